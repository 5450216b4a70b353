"""Logic: and, or, xor, not, cnot, and any function of three bits."""

# NumPy types the operators of arrays of any dtype as Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.ops.integer import elementwise
from culaunch._emulator.ptx.syntax import Immediate, Instruction

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Op
    from culaunch._emulator.types import Lanes


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
    # The table has the result for each of the eight combinations of a, b and c. With more than four
    # ones, the zeros give fewer terms.
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


# The functions that compilers emit most: sums, majorities, selections.
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
