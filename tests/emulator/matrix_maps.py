"""Tensor maps of matrices, as the driver makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.memory.tensor_map import TensorMap

if TYPE_CHECKING:
    import numpy as np


def map_of(array: np.ndarray, box: tuple[int, int], swizzle: int = 0, fill: int = 0) -> bytes:
    """Return the bytes of a matrix's tensor map."""
    kind = {"u1": 0, "f2": 6, "f4": 7, "i4": 3}[array.dtype.str[1:]]
    size = array.itemsize
    return TensorMap(
        kind, 0, swizzle, fill, array.ctypes.data, array.shape[::-1],
        (size, array.strides[0]), box[::-1], (1, 1),
    ).pack()  # fmt: skip
