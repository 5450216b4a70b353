"""prmt: the bytes of two registers in another order."""

# NumPy types the operators of arrays of any dtype as Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import Moves
from culaunch._emulator.ptx.syntax import Immediate, Instruction

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Op
    from culaunch._emulator.types import Lanes


@computes("prmt", undefined=Moves(controls=(3,)))
def _prmt(decoder: Decoder, instruction: Instruction) -> Op:
    operands = instruction.operands
    put = decoder.write(operands[0], "b32")
    low, high, control = (decoder.read(operand, "b32") for operand in operands[1:])
    mode = instruction.mods[-1] if instruction.mods[-1] in _PRMT_MODES else ""
    constant = operands[3]
    if isinstance(constant, Immediate) and not mode:
        # Nearly always the selection is a constant, and then each byte is one shift and one mask.
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
        # The sign of the byte, eight times: 0 or 255.
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
