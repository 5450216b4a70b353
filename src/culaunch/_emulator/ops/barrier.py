"""bar and barrier: the barriers of a block."""

# All decoders, and all ends of a block, have one signature each.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes, ends_block
from culaunch._emulator.decode.liveness import read_slots
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.machine.state import Arrival, End, Op
from culaunch._emulator.ptx.syntax import Instruction, Operand, Register

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.decode.instruction import Targets
    from culaunch._emulator.machine.state import Group, Runner
    from culaunch._emulator.types import Lanes

_ZERO = np.zeros(1, np.uint32)


class _BarrierEnd(End):
    """Arrive at a barrier; the thread continues at `following` when all have arrived."""

    def __init__(self, instruction: Instruction, following: int) -> None:
        self.instruction = instruction
        self.following = following
        self.successors = (following,)
        self.number: Callable[[Group], Lanes] | None = None
        self.count: Callable[[Group], Lanes] | None = None
        self.predicate: Callable[[Group], Lanes] | None = None
        self.reduction = ""
        self.result = -1
        self.uses: tuple[int, ...] = ()
        self.results: tuple[int, ...] = ()

    def run(self, group: Group, runner: Runner) -> int | None:
        """Pass the group to the barrier, in parts if its lanes name different barriers."""
        number = _ZERO if self.number is None else self.number(group)
        count = _ZERO if self.count is None else self.count(group)
        if number.shape[0] == 1 and count.shape[0] == 1:
            return self._arrive(group, runner, int(number[0]), int(count[0]))
        # Barrier and count in one number, by which the lanes are sorted into parts.
        which = np.broadcast_to(number.astype(np.uint64) << np.uint64(32) | count, (group.n,))
        parts = np.unique(which).tolist()
        if len(parts) == 1:
            return self._arrive(group, runner, parts[0] >> 32, parts[0] & 0xFFFFFFFF)
        for key in parts:
            part = group.split(np.flatnonzero(which == key), group.block)
            following = self._arrive(part, runner, key >> 32, key & 0xFFFFFFFF)
            if following is not None:
                runner.go(part, group.block, following)
        return None

    def _arrive(self, group: Group, runner: Runner, number: int, count: int) -> int | None:
        arrival = Arrival(
            self.instruction,
            number,
            None if self.count is None else count,
            self.following,
            "arrive" not in self.instruction.mods,
            self.reduction,
            None if self.predicate is None else self.predicate(group),
            self.result,
        )
        return runner.arrive(group, arrival)


class _ClusterEnd(End):
    """Arrive at the barrier of the cluster, or wait there."""

    def __init__(self, instruction: Instruction, following: int) -> None:
        self.instruction = instruction
        self.following = following
        self.successors = (following,)

    def run(self, group: Group, runner: Runner) -> int | None:
        if "wait" in self.instruction.mods:
            return runner.wait_in_cluster(group, self.instruction, self.following)
        runner.arrive_in_cluster(group, self.instruction)
        return self.following


def _results(instruction: Instruction) -> int:
    return 1 if "red" in instruction.mods else 0


def _warp_mask(instruction: Instruction) -> Operand | None:
    return instruction.operands[-1] if "warp" in instruction.mods else None


def _is_of_block(instruction: Instruction) -> bool:
    return "warp" not in instruction.mods


@ends_block("barrier", results=_results, waits=False, alone=True)
def _block_barrier(decoder: Decoder, instruction: Instruction, targets: Targets) -> End:
    """Decode a barrier as the end of a block."""
    if not _is_of_block(instruction):
        raise Unsupported  # bar.warp has no second spelling
    following = targets.following
    end = _BarrierEnd(instruction, following)
    mods = instruction.mods
    if "cluster" in mods:
        return _ClusterEnd(instruction, following)
    operands: list[Operand] = list(instruction.operands)
    # The guard is not included, because `Conditional` provides it.
    end.uses = read_slots(instruction.operands["red" in mods :])
    if "red" in mods:
        end.reduction = next(word for word in mods if word in ("popc", "and", "or"))
        target = operands.pop(0)
        if isinstance(target, Register):
            end.result = target.slot
            end.results = (target.slot,)
        end.predicate = decoder.read(operands.pop(), "pred")
    if operands:
        end.number = decoder.read(operands[0], "u32")
    if len(operands) > 1:
        end.count = decoder.read(operands[1], "u32")
    return end


@decodes(
    "bar",
    results=_results,
    effects=True,
    waits=False,
    undefined=Flow.MUST_BE_DEFINED,
    warp_mask=_warp_mask,
    end=_block_barrier,
    ends=_is_of_block,
    alone=True,
)
def _warp_barrier(decoder: Decoder, instruction: Instruction) -> Op:
    # The scheduler makes the lanes wait for each other before this runs.
    return lambda _: None
