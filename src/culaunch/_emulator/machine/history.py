"""The accesses of a launch in the order of the emulation: times, instructions, publications."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine.chunk import WARP, thread_place
from culaunch._emulator.machine.records import Records
from culaunch._emulator.memory.how import GRID
from culaunch._emulator.report import Related

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import LaunchView
    from culaunch._emulator.machine.state import Block, Group, Op
    from culaunch._emulator.memory.images import CudaArray
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes


class History:
    """One clock for all threads of a launch, also of chunks that have ended.

    The emulator runs one instruction after the other, so one clock is enough: each access gets a
    time, and a time tells the instruction. The number of a thread is the number of its lane, if all
    chunks were one.

    Attributes
    ----------
    now : int
        The time of the latest access.
    instruction : Instruction or None
        The instruction that runs.
    published : numpy.ndarray
        For each thread, the time until which its accesses are visible to the threads of the grid
        that acquire them.
    """

    def __init__(self, launch: LaunchView) -> None:
        self.launch = launch
        blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
        self.width = -(-launch.threads // WARP) * WARP
        # The system provides a page of these zeros when a thread of it first publishes.
        self.published: Lanes = np.zeros(blocks * self.width, np.int32)
        self.now = 0
        self.instruction: Instruction | None = None
        self._instructions: list[Instruction | None] = [None]
        self._scopes: Lanes = np.zeros(1024, np.uint8)
        self._wrapped: dict[int, list[Op]] = {}
        self._arrays: dict[CudaArray, Records] = {}

    def records_of(self, array: CudaArray) -> Records:
        """Return the accesses to a CUDA array."""
        if array not in self._arrays:
            size, noun = array.octets.shape[0], "a CUDA array at byte"
            self._arrays[array] = Records(size, 1, "global", int, fresh=False, noun=noun)
        return self._arrays[array]

    def tick(self, scope: int = GRID) -> int:
        """Return the time of a new access, which has this scope."""
        self.now += 1
        self._instructions.append(self.instruction)
        if self.now >= self._scopes.shape[0]:
            self._scopes = np.concatenate([self._scopes, np.zeros_like(self._scopes)])
        self._scopes[self.now] = scope
        return self.now

    def scopes(self, times: Lanes) -> Lanes:
        """Return the scopes of the accesses at `times`."""
        found: Lanes = self._scopes[times]
        return found

    def may_be_idle(self, time: int) -> bool:
        """Tell whether the thread that read at a time may never use the value."""
        instruction = self._instructions[time]
        return instruction is not None and bool(self.launch.kernel.may_be_idle(instruction))

    def watch(self, ops: list[Op], block: Block) -> list[Op]:
        """Return the operations of a block, which also record the running instruction."""
        # An observer may have other operations at each run; the block's own are wrapped once.
        found = self._wrapped.get(id(block)) if ops is block.ops else None
        if found is None:
            pairs = zip(ops, block.instructions, strict=False)
            found = [self._watched(*pair) for pair in pairs]
            if ops is block.ops:
                self._wrapped[id(block)] = found
        return found

    def name_of_started(self, time: int) -> str:
        """Return the name of the asynchronous copy or product that was started at a time."""
        instruction = self._instructions[time]
        if instruction is not None and instruction.name == "wgmma":
            return "wgmma"
        bulk = instruction is not None and "bulk" in instruction.mods
        return "cp.async.bulk" if bulk else "cp.async"

    def describe(self, what: str, thread: int, time: int) -> Related:
        """Say which thread accessed at a time, and where in the code; `what` begins the text."""
        block, index = thread_place(self.launch, thread, self.width)
        text, position = f"{what}: block {block}, thread {index}", None
        instruction = self._instructions[time]
        if instruction is not None:
            position = self.launch.position(instruction)
            text += f" at {position}: {position.text.strip()}"
        return Related(text, position)

    def _watched(self, op: Op, instruction: Instruction) -> Op:
        def run(group: Group) -> None:
            self.instruction = instruction
            op(group)

        return run
