"""CUB's algorithms of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpus._helpers import I4, cases, integers, zeros

_DEVICE = cases("cub_device.cu")
# The status of a tile that CUB has not scanned yet.
_INVALID = 99


def _tiles(count: int) -> np.ndarray:
    """Return the words of CUB's tiles: 32 of padding, then one for each tile."""
    words = np.zeros((32 + count, 2), I4)
    words[32:, 0] = _INVALID
    return words.reshape(-1)


def _selected(a: list[Any]) -> dict[int, np.ndarray]:
    kept = a[0][:1000][a[0][:1000] % 2 == 0]
    y = np.zeros(1024, I4)
    y[: len(kept)] = kept
    return {1: y, 2: np.array([len(kept)], I4)}


DEVICE = (
    _DEVICE(
        name="device_scan",
        kernel="device_scan",
        grid=(8,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 2000), zeros(2000), _tiles(8), I4(2000)],
        expected=lambda a: {1: a[0].cumsum().astype(I4)},
        same_on_gpu=False,  # the words of the tiles are CUB's own
    ),
    _DEVICE(
        name="device_reduce",
        kernel="device_reduce",
        grid=(3,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 2000), zeros(1), I4(2000)],
        expected=lambda a: {1: np.array([a[0].sum()], I4)},
    ),
    _DEVICE(
        name="device_select",
        kernel="device_select",
        grid=(4,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 1024), zeros(1024), zeros(1), _tiles(4), I4(1000)],
        expected=_selected,
        same_on_gpu=False,
    ),
)
