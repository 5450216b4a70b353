"""Tensor maps, as the driver encodes them."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.state import DriverState, Refusal
from culaunch._emulator.fault import INVALID_VALUE, NOT_SUPPORTED
from culaunch._emulator.memory.tensor_map import CORNER_BITS, ITEM_SIZES, PACKED, TensorMap

# Bytes: the largest innermost axis of a swizzled box.
_SPANS = {1: 32, 2: 64, 3: 128, 4: 128, 5: 128, 6: 128}
_WIDE_SWIZZLES = (2, 3, 4)  # of the modes im2col::w and im2col::w::128
_FLIPS = 5  # CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B


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
        *rest: Any,
    ) -> None:
        self.require_rank(rank, 1)
        sizes = list_of(box, rank, ctypes.c_uint32)
        self.encode("tile", out, kind, rank, address, extents, strides, sizes, (), (), *rest)

    def require_arch(self, what: str, major: int) -> None:
        """Refuse devices that lack a feature."""
        if self.device.capability < (major, 0):
            reason = f"{what} need sm_{major}0 or newer, but the device is {self.device.arch}"
            raise Refusal(NOT_SUPPORTED, reason)

    def require_rank(self, rank: int, least: int) -> None:
        """Refuse devices without tensor maps, and maps with too few or too many axes."""
        self.require_arch("tensor maps", 9)
        _require(least <= rank <= 5, f"a tensor map has {least} to 5 axes (got {rank})")

    def encode(
        self,
        mode: str,
        out: Any,
        kind: int,
        rank: int,
        address: int,
        extents: Any,
        strides: Any,
        box: tuple[int, ...],
        lower: tuple[int, ...],
        upper: tuple[int, ...],
        steps: Any,
        interleave: int,
        swizzle: int,
        promotion: int,
        fill: int,
    ) -> None:
        """Check a map and write its bytes."""
        _require(kind < len(ITEM_SIZES), f"there is no tensor map data type {kind}")
        if interleave:
            raise Refusal(NOT_SUPPORTED, "interleaved tensor maps are not emulated")
        _require(swizzle in (0, *_SPANS), f"there is no swizzle {swizzle}")
        if swizzle == _FLIPS:
            raise Refusal(NOT_SUPPORTED, "a swizzle that flips 8 bytes is not emulated")
        if swizzle > _FLIPS - 2:
            self.require_arch("swizzles of chunks above 16 bytes", 10)
        _require(promotion in range(4), f"there is no L2 promotion {promotion}")
        made = TensorMap(
            kind, interleave, swizzle, fill, address or 0,
            list_of(extents, rank, ctypes.c_uint64),
            (ITEM_SIZES[kind], *list_of(strides, rank - 1, ctypes.c_uint64)),
            box, list_of(steps, rank, ctypes.c_uint32), lower, upper, mode,
        )  # fmt: skip
        if kind in PACKED:
            self.require_arch("tensor maps of packed elements", 10)
            _check_packed(made)
        _check(made)
        if made.is_im2col:
            _check_im2col(made)
        # The driver ignores the innermost element stride.
        ctypes.memmove(out, made._replace(steps=(1, *made.steps[1:])).pack(), 128)


def _check(made: TensorMap) -> None:
    _require(made.address % 16 == 0, f"the address {made.address:#x} is not a multiple of 16")
    for extent in made.extents:
        _require(1 <= extent <= 1 << 32, f"the extent {extent} is not from 1 to 2^32")
    for stride in made.strides[1:]:
        _require(
            stride % 16 == 0 and stride < 1 << 40,
            f"the stride {stride} is not a multiple of 16 below 2^40",
        )
    for size in made.box[:1] if made.is_im2col else made.box:
        _require(1 <= size <= 256, f"the box's extent {size} is not from 1 to 256")
    for step in made.steps:
        _require(1 <= step <= 8, f"the element stride {step} is not from 1 to 8")
    inner = made.row_bytes
    _require(inner % 16 == 0, f"the box has {inner} bytes in a row, which is not a multiple of 16")
    span = _SPANS.get(made.swizzle, inner)
    _require(inner <= span, f"the box has {inner} bytes in a row, but the swizzle has {span}")
    floats = made.kind >= 6 and made.kind not in PACKED
    _require(not made.fill or (made.fill == 1 and floats), "only floats can be filled with NaN")


def _check_packed(made: TensorMap) -> None:
    padded = PACKED[made.kind][1] > 8
    unit, alignment = (128, 32) if padded else (2, 16)
    extent, inner = made.extents[0], made.box[0]
    _require(extent % unit == 0, f"the first extent {extent} is not a multiple of {unit}")
    _require(not padded or inner == 128, f"the box's first extent is {inner}, which is not 128")
    for name, number in (("address", made.address), *(("stride", s) for s in made.strides[1:])):
        wrong = f"the {name} {number:#x} is not a multiple of {alignment}"
        _require(number % alignment == 0, wrong)


def _check_im2col(made: TensorMap) -> None:
    pixels, most = made.box[1], 1 << CORNER_BITS[len(made.lower) + 2] - 1
    _require(1 <= pixels <= 1024, f"pixelsPerColumn is {pixels}, which is not from 1 to 1024")
    for corner in (*made.lower, *made.upper):
        _require(
            -most <= corner < most,
            f"the corner {corner} is not from {-most} to {most - 1}, for {len(made.extents)} axes",
        )
    if made.mode != "im2col":
        _require(made.swizzle in _WIDE_SWIZZLES, f"{made.mode} has no swizzle {made.swizzle}")
    for low, end in zip(made.lower, made.ends, strict=True):
        _require(low < end, f"the bounding box is empty: an axis begins at {low}, ends at {end}")
    if made.steps[-1] != 1:
        # The manual says what strides of W, H and D are, and nothing about this one.
        raise Refusal(NOT_SUPPORTED, "an element stride of images is not emulated in im2col mode")


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise Refusal(INVALID_VALUE, reason)


def list_of(pointer: Any, count: int, kind: Any) -> tuple[int, ...]:
    """Return the numbers of a C array."""
    if not count:
        return ()
    if not pointer:
        raise Refusal(INVALID_VALUE, "an array of a tensor map is null")
    return tuple(ctypes.cast(pointer, ctypes.POINTER(kind))[:count])
