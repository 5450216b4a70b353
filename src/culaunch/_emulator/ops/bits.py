"""Shifts and bit fields."""

# NumPy types the operators of arrays of any dtype as Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import Flow, Moves
from culaunch._emulator.ops.integer import elementwise
from culaunch._emulator.types import Lanes, is_signed, lane_dtype, size_of

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Op
    from culaunch._emulator.ptx.syntax import Instruction


@computes("shl", "shr", undefined=Moves(controls=(2,)))
def _shift(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    operands = instruction.operands
    put = decoder.write(operands[0], kind)
    value = decoder.read(operands[1], kind)
    # NumPy, like PTX, fills with zeros or the sign when the amount is the width or more.
    amount = decoder.read(operands[2], "u32")
    dtype = lane_dtype(kind)
    bits = f"u{dtype.itemsize}"
    small = dtype.itemsize < 4

    def count(a: Lanes) -> Lanes:
        # An amount of 32 bits does not fit in a narrow type: 256 would come out as 0.
        return (np.minimum(a, np.uint32(8 * dtype.itemsize)) if small else a).astype(bits)

    if instruction.name == "shl":
        return lambda g: put(g, value(g) << count(amount(g)))
    if is_signed(kind):
        # NumPy fills with the sign, but the amount itself must not look negative in a signed type.
        limit = np.uint32(8 * dtype.itemsize - 1)
        return lambda g: put(
            g, (value(g).view(dtype) >> np.minimum(amount(g), limit).astype(dtype)).view(bits)
        )
    return lambda g: put(g, value(g) >> count(amount(g)))


@computes("shf", undefined=Moves(controls=(3,)))
def _funnel(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    put = decoder.write(operands[0], "b32")
    low, high, amount = (decoder.read(operand, "b32") for operand in operands[1:])
    clamp, left = "clamp" in mods, "l" in mods
    word = np.uint64(32)

    def shift(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        # .wrap takes the amount modulo 32, .clamp takes 32 for everything above (PTX ISA, "shf").
        n = (np.minimum(c, np.uint32(32)) if clamp else c & np.uint32(31)).astype(np.uint64)
        both = b.astype(np.uint64) << word | a
        out = (both << n) >> word if left else both >> n
        return out.astype(np.uint32)

    return lambda g: put(g, shift(low(g), high(g), amount(g)))


@computes("bfe", undefined=Moves(controls=(2, 3)))
def _bfe(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    operands = instruction.operands
    put = decoder.write(operands[0], kind)
    value = decoder.read(operands[1], kind)
    position, length = (decoder.read(operand, "u32") for operand in operands[2:])
    dtype = lane_dtype(kind)
    bits = f"u{dtype.itemsize}"
    top = 8 * dtype.itemsize - 1

    def extract(a: Lanes, pos: Lanes, size: Lanes) -> Lanes:
        # PTX looks at the lowest byte of both.
        pos, size = pos & np.uint32(255), size & np.uint32(255)
        if dtype.kind == "u":
            return a >> pos.astype(bits) & _ones(size, bits)
        # Move the field's top bit to the register's, then back with the sign.
        last = np.minimum(pos.astype(np.int64) + size - 1, top)
        up = a << (top - last).astype(bits)
        down = np.minimum(top - last + pos, top).astype(dtype)
        return np.where(size == 0, a.dtype.type(0), (up.view(dtype) >> down).view(bits))

    return lambda g: put(g, extract(value(g), position(g), length(g)))


@computes("bfi", undefined=Moves(controls=(3, 4)))
def _bfi(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    operands = instruction.operands
    put = decoder.write(operands[0], kind)
    source, base = (decoder.read(operand, kind) for operand in operands[1:3])
    position, length = (decoder.read(operand, "u32") for operand in operands[3:])
    bits = f"u{size_of(kind)}"

    def insert(a: Lanes, b: Lanes, pos: Lanes, size: Lanes) -> Lanes:
        shift = (pos & np.uint32(255)).astype(bits)
        mask = _ones(size & np.uint32(255), bits) << shift
        return (b & ~mask) | ((a << shift) & mask)

    return lambda g: put(g, insert(source(g), base(g), position(g), length(g)))


@computes("bmsk", undefined=Flow.COMPUTES)
def _bmsk(decoder: Decoder, instruction: Instruction) -> Op:
    operands = instruction.operands
    put = decoder.write(operands[0], "b32")
    first, second = (decoder.read(operand, "b32") for operand in operands[1:])
    clamp = "clamp" in instruction.mods

    def mask(position: Lanes, size: Lanes) -> Lanes:
        if not clamp:
            position, size = position & np.uint32(31), size & np.uint32(31)
        # NumPy shifts a word by its width or more to zero.
        return _ones(size, "u4") << position

    return lambda g: put(g, mask(first(g), second(g)))


@computes("szext", undefined=Flow.COMPUTES)
def _szext(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    wrap = "wrap" in instruction.mods

    def extend(a: Lanes, b: Lanes) -> Lanes:
        size = b.view(np.uint32)
        size = size & np.uint32(31) if wrap else np.minimum(size, np.uint32(32))
        # Up to the top of the word and back, which fills with the sign where the type has one.
        gap = (np.uint32(32) - size).astype(a.dtype)
        moved = np.where(
            gap >= 32, a.dtype.type(0), (a << np.minimum(gap, 31)) >> np.minimum(gap, 31)
        )
        return moved.astype(a.dtype)

    return elementwise(decoder, instruction, kind, extend)


def _ones(count: Lanes, bits: str) -> Lanes:
    """Return words with the `count` lowest bits set."""
    word = np.dtype(bits).type
    width = 8 * np.dtype(bits).itemsize
    shift = np.minimum(count, np.uint32(width)).astype(bits)
    # Shifting all ones out on the left leaves the complement.
    return ~np.left_shift(~word(0), shift)
