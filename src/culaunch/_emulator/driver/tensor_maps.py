"""Tensor maps, as the driver encodes them."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.state import DriverState, Refusal
from culaunch._emulator.fault import INVALID_VALUE, NOT_SUPPORTED
from culaunch._emulator.memory.tensor_map import ITEM_SIZES, TensorMap

__all__ = ["TensorMapFunctions"]

_SPANS = {1: 32, 2: 64, 3: 128}  # bytes: the largest innermost axis of a swizzled box


class TensorMapFunctions(DriverState):
    """cuTensorMapEncodeTiled, with the rules of the driver API."""

    def cuTensorMapEncodeTiled(
        self,
        out: Any,
        kind: int,
        rank: int,
        address: int,
        extents: Any,
        strides: Any,
        box: Any,
        steps: Any,
        interleave: int,
        swizzle: int,
        promotion: int,
        fill: int,
    ) -> None:
        if self.device.capability < (9, 0):
            raise Refusal(
                NOT_SUPPORTED,
                f"tensor maps need sm_90 or newer, but the device is {self.device.arch}",
            )
        _require(kind < len(ITEM_SIZES), f"there is no tensor map data type {kind}")
        _require(1 <= rank <= 5, f"a tensor map has 1 to 5 axes (got {rank})")
        if interleave:
            raise Refusal(NOT_SUPPORTED, "interleaved tensor maps are not emulated")
        _require(swizzle in (0, *_SPANS), f"there is no swizzle {swizzle}")
        _require(promotion in range(4), f"there is no L2 promotion {promotion}")
        item = ITEM_SIZES[kind]
        made = TensorMap(
            kind, interleave, swizzle, fill, address or 0,
            tuple(_list(extents, rank, ctypes.c_uint64)),
            (item, *_list(strides, rank - 1, ctypes.c_uint64)),
            tuple(_list(box, rank, ctypes.c_uint32)),
            tuple(_list(steps, rank, ctypes.c_uint32)),
        )  # fmt: skip
        _check(made)
        ctypes.memmove(out, made.pack(), 128)


def _check(made: TensorMap) -> None:
    _require(made.address % 16 == 0, f"the address {made.address:#x} is not a multiple of 16")
    for extent in made.extents:
        _require(1 <= extent <= 1 << 32, f"the extent {extent} is not from 1 to 2^32")
    for stride in made.strides[1:]:
        _require(
            stride % 16 == 0 and stride < 1 << 40,
            f"the stride {stride} is not a multiple of 16 below 2^40",
        )
    for size in made.box:
        _require(1 <= size <= 256, f"the box's extent {size} is not from 1 to 256")
    for step in made.steps:
        _require(1 <= step <= 8, f"the element stride {step} is not from 1 to 8")
    inner = made.box[0] * made.item_size
    _require(inner % 16 == 0, f"the box has {inner} bytes in a row, which is not a multiple of 16")
    span = _SPANS.get(made.swizzle, inner)
    _require(inner <= span, f"the box has {inner} bytes in a row, but the swizzle has {span}")
    floats = made.kind >= 6
    _require(not made.fill or (made.fill == 1 and floats), "only floats can be filled with NaN")


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise Refusal(INVALID_VALUE, reason)


def _list(pointer: Any, count: int, kind: Any) -> list[int]:
    if not count:
        return []
    if not pointer:
        raise Refusal(INVALID_VALUE, "an array of a tensor map is null")
    return list(ctypes.cast(pointer, ctypes.POINTER(kind))[:count])
