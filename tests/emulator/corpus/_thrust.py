"""Thrust's sequential algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpus._helpers import I4, cases, integers, sorted_pairs, zeros

_THRUST = cases("thrust.cu", "--device-as-default-execution-space")


def _rows_of(values: Any, width: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Return rows filled up with zeros, and the lengths of the lists."""
    rows = np.zeros((len(values), width), I4)
    for row, one in zip(rows, values, strict=True):
        row[: len(one)] = one
    return rows.reshape(-1), np.array([len(one) for one in values], I4)


def _reduced(a: list[Any]) -> dict[int, np.ndarray]:
    keys, sums = [], []
    for row, values in zip(a[0].reshape(-1, 16), a[1].reshape(-1, 16), strict=True):
        heads = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
        keys.append(row[heads])
        sums.append(np.add.reduceat(values, heads))
    out_keys, counts = _rows_of(keys)
    return {2: out_keys, 3: _rows_of(sums)[0], 4: counts}


def _odd(a: list[Any]) -> dict[int, np.ndarray]:
    y, counts = _rows_of([row[row & 1 == 1] for row in a[0].reshape(-1, 16)])
    return {1: y, 2: counts}


def _searched(a: list[Any]) -> dict[int, np.ndarray]:
    place = np.searchsorted(a[0], a[1])
    return {2: (place[:, None] + np.array([0, 1, 3, 6])).astype(I4).reshape(-1)}


THRUST = (
    _THRUST(
        name="thrust_sort",
        kernel="thrust_sort",
        grid=(1,),
        block=(8,),
        arguments=lambda rng: [integers(rng, 256, 0, 9), zeros(256)],
        expected=lambda a: sorted_pairs(a, 32),
    ),
    _THRUST(
        name="thrust_reduce_by_key",
        kernel="thrust_reduce_by_key",
        grid=(1,),
        block=(4,),
        arguments=lambda rng: [
            integers(rng, 64, 0, 3), integers(rng, 64), zeros(64), zeros(64), zeros(4),
        ],
        expected=_reduced,
    ),
    _THRUST(
        name="thrust_copy_if",
        kernel="thrust_copy_if",
        grid=(1,),
        block=(4,),
        arguments=lambda rng: [integers(rng, 64), zeros(64), zeros(4)],
        expected=_odd,
    ),
    _THRUST(
        name="thrust_unique",
        kernel="thrust_unique",
        grid=(1,),
        block=(4,),
        # Thrust leaves anything behind the last element that it keeps.
        arguments=lambda rng: [np.sort(integers(rng, 64, 0, 9)), zeros(4)],
        expected=lambda a: {
            1: np.array([len(np.unique(row)) for row in a[0].reshape(-1, 16)], I4)
        },
    ),
    _THRUST(
        name="thrust_scan",
        kernel="thrust_scan",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [
            np.sort(integers(rng, 40)), integers(rng, 64), zeros(256), I4(40),
        ],
        expected=_searched,
    ),
)  # fmt: skip
