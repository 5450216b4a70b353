"""bar and barrier: the barriers of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator._fault import NOT_SUPPORTED, Fault
from culaunch._emulator._ops._registry import decodes
from culaunch._emulator._ptx._syntax import Instruction, Operand, Register
from culaunch._emulator._simt._barriers import Arrival
from culaunch._emulator._simt._code import End, Op

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator._decoder import Decoder
    from culaunch._emulator._simt._group import Group
    from culaunch._emulator._simt._scheduler import Scheduler
    from culaunch._emulator._types import Lanes

__all__ = ["decode_barrier", "is_barrier"]


def is_barrier(instruction: Instruction) -> bool:
    """Tell whether an instruction is a barrier of the block."""
    return instruction.name in ("bar", "barrier") and "warp" not in instruction.mods


class _BarrierEnd(End):
    """Come to a barrier; the thread goes on at `following` when everyone has."""

    def __init__(self, instruction: Instruction, following: int) -> None:
        self.instruction = instruction
        self.following = following
        self.successors = (following,)
        self.number: Callable[[Group], Lanes] | None = None
        self.count: Callable[[Group], Lanes] | None = None
        self.predicate: Callable[[Group], Lanes] | None = None
        self.reduction = ""
        self.result = -1

    def run(self, group: Group, scheduler: Scheduler) -> int | None:
        """Hand the group to the barrier."""
        number = 0 if self.number is None else self._uniform(self.number(group), group)
        count = None if self.count is None else self._uniform(self.count(group), group)
        arrival = Arrival(
            self.instruction,
            number,
            count,
            self.following,
            "arrive" not in self.instruction.mods,
            self.reduction,
            None if self.predicate is None else self.predicate(group),
            self.result,
        )
        return scheduler.barriers.arrive(group, arrival)

    def _uniform(self, value: Lanes, group: Group) -> int:
        if value.shape[0] > 1 and (value != value[0]).any():
            raise Fault(
                NOT_SUPPORTED,
                "barriers whose number or count differs between threads that run together",
                lane=group.lane_at(0),
            )
        return int(value[0])


def decode_barrier(decoder: Decoder, instruction: Instruction, following: int) -> End:
    """Decode a barrier as the end of a block."""
    end = _BarrierEnd(instruction, following)
    mods = instruction.mods
    if "cluster" in mods:
        # A cluster has one block. arrive and wait come in pairs: the wait is the barrier.
        return _BarrierEnd(instruction, following) if "wait" in mods else _Skip(following)
    operands: list[Operand] = list(instruction.operands)
    if "red" in mods:
        end.reduction = next(word for word in mods if word in ("popc", "and", "or"))
        target = operands.pop(0)
        if isinstance(target, Register):
            end.result = target.slot
        end.predicate = decoder.read(operands.pop(), "pred")
    if operands:
        end.number = decoder.read(operands[0], "u32")
    if len(operands) > 1:
        end.count = decoder.read(operands[1], "u32")
    return end


class _Skip(End):
    def __init__(self, following: int) -> None:
        self.following = following
        self.successors = (following,)

    def run(self, group: Group, scheduler: Scheduler) -> int | None:
        return self.following


@decodes("bar", effects=True)
def _warp_barrier(decoder: Decoder, instruction: Instruction) -> Op:
    # The scheduler lets the lanes wait for each other before it runs this.
    return lambda group: None
