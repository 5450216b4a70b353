"""Logic, shifts, bit fields and byte permutation."""

# NumPy types the operators of arrays of any dtype as Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import MOVES, Flow, Moves
from culaunch._emulator.ops.integer import elementwise
from culaunch._emulator.ptx.syntax import Immediate, Instruction
from culaunch._emulator.types import Lanes, is_signed, lane_dtype, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Op

_LOGIC: dict[str, Callable[..., Lanes]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
}


@computes("and", "or", "xor", "not", undefined=Flow.BITWISE)
def _logic(decoder: Decoder, instruction: Instruction) -> Op:
    return elementwise(decoder, instruction, decoder.type(instruction), _LOGIC[instruction.name])


@computes("cnot", undefined=Flow.COMPUTES)
def _cnot(decoder: Decoder, instruction: Instruction) -> Op:
    return elementwise(
        decoder, instruction, decoder.type(instruction), lambda a: (a == 0).astype(a.dtype)
    )


@computes("lop3", undefined=Flow.BITWISE)
def _lop3(decoder: Decoder, instruction: Instruction) -> Op:
    operands = instruction.operands
    table = operands[4]
    if "BOOL" in instruction.mods or not isinstance(table, Immediate):
        raise Unsupported
    put = decoder.write(operands[0], "b32")
    a, b, c = (decoder.read(operand, "b32") for operand in operands[1:4])
    invert = table.bits.bit_count() > 4
    bits = ~table.bits & 0xFF if invert else table.bits
    known = _KNOWN_TABLES.get(table.bits & 0xFF)
    if known is not None:
        return lambda g: put(g, known(a(g), b(g), c(g)))

    def combine(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
        out: Lanes = np.zeros(1, np.uint32)
        for row in range(8):
            if bits >> row & 1:
                term = (x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z)
                out = out | term
        return ~out if invert else out

    return lambda g: put(g, combine(a(g), b(g), c(g)))


_KNOWN_TABLES: dict[int, Callable[[Lanes, Lanes, Lanes], Lanes]] = {
    0x96: lambda a, b, c: a ^ b ^ c,
    0x80: lambda a, b, c: a & b & c,
    0xFE: lambda a, b, c: a | b | c,
    0xF8: lambda a, b, c: a | (b & c),
    0xEA: lambda a, b, c: (a & b) | c,
    0xCA: lambda a, b, c: (a & b) | (~a & c),
    0xE8: lambda a, b, c: (a & b) | (a & c) | (b & c),
    0x6A: lambda a, b, c: (a & b) ^ c,
    0x78: lambda a, b, c: a ^ (b & c),
}


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
        return (np.minimum(a, np.uint32(8 * dtype.itemsize)) if small else a).astype(bits)

    if instruction.name == "shl":
        return lambda g: put(g, value(g) << count(amount(g)))
    if is_signed(kind):
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
        n = (np.minimum(c, np.uint32(32)) if clamp else c & np.uint32(31)).astype(np.uint64)
        both = b.astype(np.uint64) << word | a
        out = (both << n) >> word if left else both >> n
        return out.astype(np.uint32)

    return lambda g: put(g, shift(low(g), high(g), amount(g)))


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
            a = np.where(a < 0, ~a, a).view(f"u{a.dtype.itemsize}")
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
        values = zip(m.tolist(), b.tolist(), n.view(np.int32).tolist(), strict=True)
        return np.array([_nth_set_bit(*v) for v in values], np.uint32)

    return lambda g: put(g, find(mask(g), base(g), offset(g)))


def _nth_set_bit(mask: int, base: int, offset: int) -> int:
    step = -1 if offset < 0 else 1
    wanted = abs(offset) or 1
    stop = base + step if offset == 0 else (32 if step > 0 else -1)
    for position in range(base, stop, step):
        if mask >> position & 1:
            wanted -= 1
            if not wanted:
                return position
    return 0xFFFFFFFF


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
        gap = (np.uint32(32) - size).astype(a.dtype)
        moved = np.where(
            gap >= 32, a.dtype.type(0), (a << np.minimum(gap, 31)) >> np.minimum(gap, 31)
        )
        return moved.astype(a.dtype)

    return elementwise(decoder, instruction, kind, extend)


@computes("prmt", undefined=Moves(controls=(3,)))
def _prmt(decoder: Decoder, instruction: Instruction) -> Op:
    operands = instruction.operands
    put = decoder.write(operands[0], "b32")
    low, high, control = (decoder.read(operand, "b32") for operand in operands[1:])
    mode = instruction.mods[-1] if instruction.mods[-1] in _PRMT_MODES else ""
    constant = operands[3]
    if isinstance(constant, Immediate) and not mode:
        selectors = [constant.bits >> (4 * i) & 15 for i in range(4)]
        return lambda g: put(g, _permute_constant(low(g), high(g), selectors))
    return lambda g: put(g, _permute(low(g), high(g), control(g), mode))


_PRMT_MODES: dict[str, list[list[int]]] = {
    "f4e": [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]],
    "b4e": [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]],
    "rc8": [[0] * 4, [1] * 4, [2] * 4, [3] * 4],
    "ecl": [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]],
    "ecr": [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]],
    "rc16": [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]],
}


def _permute_constant(a: Lanes, b: Lanes, selectors: list[int]) -> Lanes:
    out: Lanes = np.zeros(1, np.uint32)
    for i, selector in enumerate(selectors):
        word = b if selector & 4 else a
        byte = word >> np.uint32(8 * (selector & 3)) & np.uint32(255)
        if selector & 8:
            byte = (byte >> np.uint32(7)) * np.uint32(255)
        out = out | byte << np.uint32(8 * i)
    return out


def _permute(a: Lanes, b: Lanes, control: Lanes, mode: str) -> Lanes:
    both = b.astype(np.uint64) << np.uint64(32) | a
    out: Lanes = np.zeros(1, np.uint32)
    for i in range(4):
        if mode:
            # The tables list the most significant byte first.
            chosen = np.array([row[3 - i] for row in _PRMT_MODES[mode]], np.uint64)
            index, sign = chosen[control & np.uint32(3)], None
        else:
            selector = control >> np.uint32(4 * i) & np.uint32(15)
            index, sign = (selector & np.uint32(7)).astype(np.uint64), selector >> np.uint32(3)
        byte = (both >> index * np.uint64(8)).astype(np.uint32) & np.uint32(255)
        if sign is not None:
            byte = np.where(sign, (byte >> np.uint32(7)) * np.uint32(255), byte)
        out = out | byte << np.uint32(8 * i)
    return out


def _ones(count: Lanes, bits: str) -> Lanes:
    """Return words with the `count` lowest bits set."""
    word = np.dtype(bits).type
    width = 8 * np.dtype(bits).itemsize
    shift = np.minimum(count, np.uint32(width)).astype(bits)
    # Shifting all ones out on the left leaves the complement.
    return ~np.left_shift(~word(0), shift)


def _reverse(a: Lanes) -> Lanes:
    word = a.dtype.type
    width = 8 * a.dtype.itemsize
    for step, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        pattern = word(int.from_bytes(bytes([mask]) * a.dtype.itemsize, "little"))
        a = (a >> word(step) & pattern) | ((a & pattern) << word(step))
    return np.ascontiguousarray(a).byteswap() if width > 8 else a


def _population(a: Lanes) -> Lanes:
    word = a.dtype.type
    size = a.dtype.itemsize
    a = a - (a >> word(1) & word(int("55" * size, 16)))
    pairs = word(int("33" * size, 16))
    a = (a & pairs) + (a >> word(2) & pairs)
    a = a + (a >> word(4)) & word(int("0f" * size, 16))
    return ((a * word(int("01" * size, 16))) >> word(8 * (size - 1))).astype(np.uint32)


def _leading_zeros(a: Lanes) -> Lanes:
    word = a.dtype.type
    width = 8 * a.dtype.itemsize
    for step in (1, 2, 4, 8, 16, 32):
        if step < width:
            a = a | a >> word(step)
    return np.uint32(width) - _population(a)
