"""Video instructions on the parts of a register: vadd4 of its bytes, vadd2 of its halves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.numerics.compare import COMPARISONS
from culaunch._emulator.ops.integer import packed_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

_FUNCTIONS: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vabsdiff": lambda a, b: np.abs(a - b),
    # Rounded like the code for "vavrg4" in the PTX ISA.
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}


@computes(*(f"{name}{parts}" for name in _FUNCTIONS for parts in (2, 4)), undefined=Flow.COMPUTES)
def _video(decoder: Decoder, instruction: Instruction) -> Op:
    name, mods, operands = instruction.name, instruction.mods, instruction.operands
    kinds = [word for word in mods if word in ("u32", "s32")]
    if len(kinds) != 3 or set(mods) - {"u32", "s32", "sat", "add"}:
        raise Unsupported
    function, saturate, accumulate = _FUNCTIONS[name[:-1]], "sat" in mods, "add" in mods
    result, first, second = _part_types(name, kinds)
    info = np.iinfo(result)
    put = decoder.write(operands[0], "u32")
    a, b, c = (decoder.read(operand, "u32") for operand in operands[1:4])

    def run(group: Group) -> None:
        value = function(packed_elements(a(group), first), packed_elements(b(group), second))
        if accumulate:
            put(group, value.sum(axis=1).astype(np.uint32) + c(group))
            return
        if saturate:
            value = np.clip(value, info.min, info.max)
        packed = np.ascontiguousarray(value.astype(f"u{info.bits // 8}"))
        put(group, packed.view(np.uint32)[:, 0])

    return run


@computes("vset2", "vset4", undefined=Flow.COMPUTES)
def _set(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    kinds = [word for word in mods if word in ("u32", "s32")]
    comparisons = [word for word in mods if word in COMPARISONS]
    if len(kinds) != 2 or len(comparisons) != 1 or set(mods) - {*kinds, *comparisons, "add"}:
        raise Unsupported
    compare, accumulate = COMPARISONS[comparisons[0]], "add" in mods
    first, second = _part_types(instruction.name, kinds)
    put = decoder.write(operands[0], "u32")
    a, b, c = (decoder.read(operand, "u32") for operand in operands[1:4])

    def run(group: Group) -> None:
        true = compare(packed_elements(a(group), first), packed_elements(b(group), second))
        if accumulate:
            put(group, true.sum(axis=1).astype(np.uint32) + c(group))
        else:
            put(group, np.ascontiguousarray(true.astype(f"u{first[1]}")).view(np.uint32)[:, 0])

    return run


def _part_types(name: str, kinds: list[str]) -> Iterator[str]:
    size = 4 // int(name[-1])
    return (f"i{size}" if kind == "s32" else f"u{size}" for kind in kinds)
