"""Instructions at which the lanes of a warp, or the threads of a block, meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._emulator.compiled.lane import Untraceable
from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.ptx.syntax import Pair, Sink

if TYPE_CHECKING:
    from culaunch._emulator.compiled.operands import LaneDecoder, LaneGroup
    from culaunch._emulator.ptx.syntax import Instruction, Operand

_VOTES = ("all", "any", "uni", "ballot")
_REDUX = ("add", "min", "max", "and", "or", "xor")


class Meeting:
    """An instruction that a warp executes together: its operands before, its results after.

    The thread stores its operands, and stops. When all have come, the runtime computes the results,
    and each thread goes on.
    """

    def __init__(self, decoder: LaneDecoder, instruction: Instruction) -> None:
        self.decoder = decoder
        mods, operands = instruction.mods, instruction.operands
        name = instruction.name
        mask = definition(instruction).warp_mask(instruction)
        assert mask is not None
        self.mask: Operand = mask
        self.given: list[tuple[Operand, str]] = []
        self.results: list[tuple[Operand, str, str]] = []
        target: Operand = operands[0] if operands else Sink()
        first, second = (
            (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
        )
        if name == "bar":
            self.what = "SYNC"
        elif name == "shfl":
            mode = next(word for word in mods if word in ("up", "down", "bfly", "idx"))
            self.what = f"SHFL_{mode.upper()}"
            self.given = [(operand, "b32") for operand in operands[1:4]]
            self.results = [(first, "b32", "y"), (second, "pred", "p")]
        elif name == "vote":
            mode = next(word for word in mods if word in _VOTES)
            self.what = f"VOTE_{mode.upper()}"
            self.given = [(operands[1], "pred")]
            self.results = [(first, "b32" if mode == "ballot" else "pred", "y")]
        elif name == "match" and decoder.type(instruction) == "b32":
            self.what = "MATCH_ANY" if "any" in mods else "MATCH_ALL"
            self.given = [(operands[1], "b32")]
            self.results = [(first, "b32", "y"), (second, "pred", "p")]
        elif name == "redux" and (kind := decoder.type(instruction)) in ("u32", "s32", "b32"):
            mode = next(word for word in mods if word in _REDUX).upper()
            self.what = f"{mode}_{kind[0].upper()}" if mode in ("MIN", "MAX") else mode
            self.given = [(operands[1], kind)]
            self.results = [(first, kind, "y")]
        elif name == "elect":
            self.what = "ELECT"
            self.results = [(first, "b32", "y"), (second, "pred", "p")]
        else:
            raise Untraceable(f"the instruction {instruction.opcode}")

    def before(self, group: LaneGroup) -> None:
        """Store the operands."""
        do = group.trace.do
        do(f"t->what = {self.what}; t->x[1] = 0;")
        do(f"t->mask = {group.read(self.decoder.read(self.mask, 'b32'), 'u4').name};")
        for i, (operand, kind) in enumerate(self.given):
            value = group.read(self.decoder.read(operand, kind), bool if kind == "pred" else "u4")
            do(f"t->x[{i}] = {value.name};")

    def after(self, group: LaneGroup) -> None:
        """Take the results."""
        for target, kind, field in self.results:
            dtype = bool if kind == "pred" else "u4"
            group.write(self.decoder.write(target, kind), f"t->{field}", dtype)


def barrier(decoder: LaneDecoder, instruction: Instruction, group: LaneGroup, where: int) -> Any:
    """Store the operands of a block's barrier; return the register of its result, or None."""
    mods, operands = instruction.mods, list(instruction.operands)
    if {"cluster", "arrive"} & set(mods):
        raise Untraceable(f"the instruction {instruction.opcode}")
    do, target = group.trace.do, None
    do(f"t->where = {where}; t->bar = 0; t->count = 0;")
    if "red" in mods:
        target = operands.pop(0)
        mode = next(word for word in mods if word in ("popc", "and", "or"))
        do(f"t->what = {'ADD' if mode == 'popc' else mode.upper()};")
        do(f"t->vote = {group.read(decoder.read(operands.pop(), 'pred'), bool).name};")
    for field, operand in zip(("bar", "count"), operands, strict=False):
        do(f"t->{field} = {group.read(decoder.read(operand, 'u32'), 'u4').name};")
    return target
