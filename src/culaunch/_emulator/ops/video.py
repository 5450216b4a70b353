"""Video instructions on the four bytes of a register: vadd4, vsub4, vset4 and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.numerics.compare import COMPARISONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

_FUNCTIONS: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "vadd4": np.add,
    "vsub4": np.subtract,
    "vmin4": np.minimum,
    "vmax4": np.maximum,
    "vabsdiff4": lambda a, b: np.abs(a - b),
    # Rounded as the code that PTX ISA gives for "vavrg4".
    "vavrg4": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}


@computes(*_FUNCTIONS, undefined=Flow.COMPUTES)
def _video(decoder: Decoder, instruction: Instruction) -> Op:
    name, mods, operands = instruction.name, instruction.mods, instruction.operands
    kinds = [word for word in mods if word in ("u32", "s32")]
    if len(kinds) != 3 or set(mods) - {"u32", "s32", "sat", "add"}:
        raise Unsupported
    function, saturate, accumulate = _FUNCTIONS[name], "sat" in mods, "add" in mods
    result, first, second = ("i1" if kind == "s32" else "u1" for kind in kinds)
    info = np.iinfo(result)
    put = decoder.write(operands[0], "u32")
    a, b, c = (decoder.read(operand, "u32") for operand in operands[1:4])

    def run(group: Group) -> None:
        value = function(_bytes(a(group), first), _bytes(b(group), second))
        if accumulate:
            put(group, value.sum(axis=1).astype(np.uint32) + c(group))
            return
        if saturate:
            value = np.clip(value, info.min, info.max)
        packed = np.ascontiguousarray(value.astype(np.uint8))
        put(group, packed.view(np.uint32)[:, 0])

    return run


@computes("vset4", undefined=Flow.COMPUTES)
def _set(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    kinds = [word for word in mods if word in ("u32", "s32")]
    comparisons = [word for word in mods if word in COMPARISONS]
    if len(kinds) != 2 or len(comparisons) != 1 or set(mods) - {*kinds, *comparisons, "add"}:
        raise Unsupported
    compare, accumulate = COMPARISONS[comparisons[0]], "add" in mods
    first, second = ("i1" if kind == "s32" else "u1" for kind in kinds)
    put = decoder.write(operands[0], "u32")
    a, b, c = (decoder.read(operand, "u32") for operand in operands[1:4])

    def run(group: Group) -> None:
        true = compare(_bytes(a(group), first), _bytes(b(group), second))
        if accumulate:
            put(group, true.sum(axis=1).astype(np.uint32) + c(group))
        else:
            put(group, np.ascontiguousarray(true.astype(np.uint8)).view(np.uint32)[:, 0])

    return run


def _bytes(value: Lanes, dtype: str) -> Lanes:
    return np.ascontiguousarray(value).view(dtype).reshape(-1, 4).astype(np.int64)
