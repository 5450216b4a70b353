"""Tensor maps that culaunch itself does not encode."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.driver.tensor_maps import list_of
from culaunch._emulator.fault import INVALID_VALUE
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.memory.tensor_map import MODES


class ProgramTensorMapFunctions(EmulatedDriver):
    """cuTensorMapEncodeIm2col and its wide form, with the rules of the driver API."""

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
        given = out, kind, rank, address, extents, strides
        self.encode("im2col", *given, (channels, pixels), low, high, *rest)

    @takes("p i u p *q *q i i u u *u i i i i i")
    def cuTensorMapEncodeIm2colWide(
        self,
        out: Any,
        kind: int,
        rank: int,
        address: int,
        extents: Any,
        strides: Any,
        lower: int,
        upper: int,
        channels: int,
        pixels: int,
        steps: Any,
        interleave: int,
        mode: int,
        *rest: Any,
    ) -> None:
        self.require_arch("wide tensor maps", 10)
        self.require_rank(rank, 3)
        if mode not in range(2):
            raise Refusal(INVALID_VALUE, f"there is no CUtensorMapIm2ColWideMode {mode}")
        given = out, kind, rank, address, extents, strides
        box = channels, 128 if mode else pixels  # the mode w::128 has a fixed number
        name = MODES[2 + mode]
        self.encode(name, *given, box, (lower,), (upper,), steps, interleave, *rest)
