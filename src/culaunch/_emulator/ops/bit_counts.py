"""Where and how many bits are set, and their order turned round."""

# NumPy types the operators of arrays of any dtype as Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import MOVES, Flow
from culaunch._emulator.ops.integer import elementwise
from culaunch._emulator.types import Lanes, size_of

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Op
    from culaunch._emulator.ptx.syntax import Instruction


@computes("brev", undefined=MOVES)
@computes("popc", "clz", undefined=Flow.COMPUTES)
def _count(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    if instruction.name == "brev":
        return elementwise(decoder, instruction, kind, _reverse)
    function = _population if instruction.name == "popc" else _leading_zeros
    return elementwise(decoder, instruction, kind, function, result="u32")


@computes("bfind", undefined=Flow.COMPUTES)
def _bfind(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    width = 8 * size_of(kind)

    def find(a: Lanes) -> Lanes:
        if a.dtype.kind == "i":
            # For a negative number, the result is the highest bit that differs from the sign, which
            # is the highest bit that is set in its complement.
            a = np.where(a < 0, ~a, a).view(f"u{a.dtype.itemsize}")
        # Without a set bit this wraps around to 0xffffffff, which is also PTX's result.
        position = np.uint32(width - 1) - _leading_zeros(a)
        if "shiftamt" in instruction.mods:
            return np.where(a == 0, position, np.uint32(width - 1) - position)
        return position

    return elementwise(decoder, instruction, kind, find, result="u32")


@computes("fns", undefined=Flow.COMPUTES)
def _fns(decoder: Decoder, instruction: Instruction) -> Op:
    operands = instruction.operands
    put = decoder.write(operands[0], "u32")
    mask, base, offset = (decoder.read(operand, "u32") for operand in operands[1:])

    def find(m: Lanes, b: Lanes, n: Lanes) -> Lanes:
        m, b, n = np.broadcast_arrays(m, b, n)
        # A rare search, so process the lanes one by one in Python.
        values = zip(m.tolist(), b.tolist(), n.view(np.int32).tolist(), strict=True)
        return np.array([_nth_set_bit(*v) for v in values], np.uint32)

    return lambda g: put(g, find(mask(g), base(g), offset(g)))


def _nth_set_bit(mask: int, base: int, offset: int) -> int:
    step = -1 if offset < 0 else 1
    # PTX ISA, "fns": offset 0 tests only the bit `base`, others count set bits up or down from it.
    wanted = abs(offset) or 1
    stop = base + step if offset == 0 else (32 if step > 0 else -1)
    for position in range(base, stop, step):
        if mask >> position & 1:
            wanted -= 1
            if not wanted:
                return position
    return 0xFFFFFFFF


def _reverse(a: Lanes) -> Lanes:
    word = a.dtype.type
    width = 8 * a.dtype.itemsize
    # Swap neighboring bits, pairs and nibbles, which reverses every byte; then reverse the bytes.
    for step, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        pattern = word(int.from_bytes(bytes([mask]) * a.dtype.itemsize, "little"))
        a = (a >> word(step) & pattern) | ((a & pattern) << word(step))
    return a.byteswap() if width > 8 else a


def _population(a: Lanes) -> Lanes:
    word = a.dtype.type
    size = a.dtype.itemsize
    # Add neighboring bits, then pairs, then nibbles, side by side in one word. A multiplication
    # adds up the bytes in the highest one (Warren, "Hacker's Delight", 5-1).
    a = a - (a >> word(1) & word(int("55" * size, 16)))
    pairs = word(int("33" * size, 16))
    a = (a & pairs) + (a >> word(2) & pairs)
    a = a + (a >> word(4)) & word(int("0f" * size, 16))
    return ((a * word(int("01" * size, 16))) >> word(8 * (size - 1))).astype(np.uint32)


def _leading_zeros(a: Lanes) -> Lanes:
    word = a.dtype.type
    width = 8 * a.dtype.itemsize
    # Copy the highest bit to all bits below it: the bits that stay unset are the leading zeros.
    for step in (1, 2, 4, 8, 16, 32):
        if step < width:
            a = a | a >> word(step)
    return np.uint32(width) - _population(a)
