"""Tensor maps that culaunch itself does not encode."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.driver.tensor_maps import list_of
from culaunch._emulator.libcuda.c_function import takes


class ProgramTensorMapFunctions(EmulatedDriver):
    """cuTensorMapEncodeIm2col, with the rules of the driver API."""

    @takes("p i u p *q *q *i *i u u *u i i i i")
    def cuTensorMapEncodeIm2col(
        self,
        out: Any,
        kind: int,
        rank: int,
        address: int,
        extents: Any,
        strides: Any,
        lower: Any,
        upper: Any,
        channels: int,
        pixels: int,
        *rest: Any,
    ) -> None:
        self.require_rank(rank, 3)
        # The order is W, H, D, as in all arrays of tensor maps; cuda.h says D, H, W.
        low, high = (list_of(one, rank - 2, ctypes.c_int) for one in (lower, upper))
        box = channels, pixels
        self.encode(out, kind, rank, address, extents, strides, box, low, high, *rest)
