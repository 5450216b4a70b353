"""Cooperative groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from corpus._case import Case, from_cuda

_GROUPS = partial(Case, ptx=from_cuda("groups.cu"))


def _integers(count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-99, 99, count, np.int32)


def _scans(a: list[Any]) -> dict[int, np.ndarray]:
    tiles = a[0].reshape(-1, 16)
    return {
        1: np.repeat(tiles.sum(1), 16).astype(np.int32),
        2: tiles.cumsum(1).astype(np.int32).reshape(-1),
    }


def _steps(a: list[Any]) -> dict[int, np.ndarray]:
    x = a[0]
    for _ in range(int(a[3])):
        x = x + np.roll(x, -17)
    return {0: x}


GROUPS = (
    _GROUPS(
        name="tile_sums",
        kernel="tile_sums",
        grid=(3,),
        block=(64,),
        arguments=lambda rng: [_integers(192, rng), np.zeros(24, np.int32)],
        expected=lambda a: {1: a[0].reshape(24, 8).sum(1).astype(np.int32)},
    ),
    _GROUPS(
        name="tile_reduce_scan",
        kernel="tile_reduce_scan",
        grid=(2,),
        block=(96,),
        arguments=lambda rng: [
            _integers(192, rng),
            np.zeros(192, np.int32),
            np.zeros(192, np.int32),
        ],
        expected=_scans,
    ),
    _GROUPS(
        name="coalesced_count",
        kernel="coalesced_count",
        grid=(4,),
        block=(64,),
        arguments=lambda rng: [_integers(250, rng), np.zeros(1, np.int32), np.int32(250)],
        expected=lambda a: {1: np.array([(a[0] % 3 == 0).sum()], np.int32)},
    ),
    _GROUPS(
        name="grid_steps",
        kernel="grid_steps",
        grid=(5,),
        block=(64,),
        cooperative=True,
        arguments=lambda rng: [
            _integers(300, rng),
            np.zeros(300, np.int32),
            np.int32(300),
            np.int32(3),
        ],
        expected=_steps,
    ),
)
