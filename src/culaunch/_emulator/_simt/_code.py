"""A function as the scheduler sees it: basic blocks of operations, with liveness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator._types import Lanes, unsigned

if TYPE_CHECKING:
    from culaunch._emulator._ptx._syntax import Function, Instruction
    from culaunch._emulator._simt._group import Group
    from culaunch._emulator._simt._scheduler import Scheduler
    from culaunch._emulator._undefined._plan import Plan

__all__ = ["Block", "Code", "End", "Op"]

Op = Callable[["Group"], None]


class End:
    """How a block ends: where its group goes next.

    `successors` are the blocks of the same function that can follow, `uses` the registers on
    which it depends besides a guard, and `results` those that it writes.
    """

    successors: tuple[int, ...] = ()
    uses: tuple[int, ...] = ()
    results: tuple[int, ...] = ()

    def run(self, group: Group, scheduler: Scheduler) -> int | None:
        """Return the block at which `group` goes on, or None if it was handed to the scheduler."""
        raise NotImplementedError


@dataclass
class Block:
    """Instructions that run one after the other.

    `sync` returns, for a block that starts with an instruction for which the lanes of a warp wait
    for each other, the mask of lanes that each lane waits for. `names_lanes` is set if that mask
    may lack some.
    """

    index: int
    instructions: list[Instruction]
    ops: list[Op] = field(default_factory=list)
    end: End = field(default_factory=End)
    live_in: tuple[int, ...] = ()
    dead: tuple[int, ...] = ()
    waits: bool = False
    sync: Callable[[Group], Lanes] | None = None
    names_lanes: bool = False


class Code:
    """A decoded function.

    Attributes
    ----------
    base : int
        The program counter of its first block; unique in the module.
    zeros : list of numpy.ndarray
        What each register holds before it is written.
    carry : int
        The slot of the condition code's carry flag.
    """

    def __init__(self, function: Function, base: int) -> None:
        self.function = function
        self.base = base
        self.blocks: list[Block] = []
        self.zeros = [
            _zero(kind, function.slot_sizes.get(i, 0)) for i, kind in enumerate(function.slots)
        ]
        self.carry = len(self.zeros)
        self.zeros.append(np.zeros(1, bool))
        locals_ = [v for v in function.variables.values() if v.space == "local"]
        end = max((v.offset + v.size for v in locals_), default=0)
        # The next frame starts at a multiple of the largest alignment a vector access needs.
        self.local_bytes = -(-end // 16) * 16
        # How undefined bits go through its instructions, by their identity.
        self.plans: dict[int, Plan] = {}
        self._reachable: dict[int, set[int]] = {}

    def reaches(self, start: int, target: int) -> bool:
        """Tell whether control can get from block `start` to block `target`."""
        found = self._reachable.get(start)
        if found is None:
            found = self._reachable[start] = {start}
            todo = [start]
            while todo:
                for block in self.blocks[todo.pop()].end.successors:
                    if block not in found:
                        found.add(block)
                        todo.append(block)
        return target in found


def _zero(kind: str, size: int) -> Any:
    if kind == "param":
        return np.zeros((1, -(-size // 16) * 16), np.uint8)
    if kind == "pred":
        return np.zeros(1, bool)
    if kind == "b128":
        return np.zeros((1, 2), np.uint64)
    return np.zeros(1, unsigned(kind))
