"""Threads that are at the same place, and the decoded code that they are in.

A group of threads runs operations, and an operation is a function of a group: the types name each
other, and are in one file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from culaunch._emulator.machine import taint
from culaunch._emulator.machine.taint import NONE
from culaunch._emulator.memory.bytes import take
from culaunch._emulator.types import Lanes, unsigned

if TYPE_CHECKING:
    from culaunch._emulator.fault import Fault
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.taint import Taints
    from culaunch._emulator.ptx.syntax import Function, Instruction
    from culaunch._emulator.report import Related

Op = Callable[["Group"], None]


class Group:
    """Lanes of a chunk that execute together, in ascending order.

    Every register is an array with a value for each lane, or a single value for all of them. A
    value that does not depend on the thread is therefore computed once. An array is never written
    to once it is in a register: several registers and groups may share it.

    Attributes
    ----------
    lanes : numpy.ndarray
        The numbers of the lanes in the chunk. A lane's position in the group is its index here.
    code, block : Code and int
        The function that the lanes are in, and its block where they continue.
    regs : list of numpy.ndarray
        The registers by slot.
    frames : list of Frame
        The functions that called this one, outermost first. A list is never changed in place:
        groups that split from one share it.
    local_base : int
        The start of the function's variables in the local memory of a thread.
    spin, spin_end : int
        How often the group repeated a loop in which it waits for other threads, and the last block
        of that loop. The scheduler uses it to see that the group has left the loop.
    undefined : dict
        The registers that have undefined bits, by slot.
    """

    __slots__ = (
        "_block_index",
        "_whole_warps",
        "block",
        "chunk",
        "code",
        "frames",
        "lanes",
        "local_base",
        "n",
        "regs",
        "spin",
        "spin_end",
        "undefined",
    )

    def __init__(
        self,
        chunk: Chunk,
        lanes: Lanes,
        code: Code,
        regs: list[Lanes],
        block: int = 0,
        frames: list[Frame] | None = None,
        local_base: int = 0,
    ) -> None:
        self.chunk = chunk
        self.lanes = lanes
        self.n: int = lanes.shape[0]
        self.code = code
        self.regs = regs
        self.block = block
        self.frames = frames or []
        self.local_base = local_base
        self.spin = 0
        self.spin_end = -1
        self.undefined: Taints = NONE
        # Both follow from the lanes, which never change, so the results are cached.
        self._block_index: Lanes | None = None
        self._whole_warps: bool | None = None

    @property
    def full(self) -> bool:
        """Whether every lane of the chunk is here; then lane i is at index i."""
        return self.n == self.chunk.size

    @property
    def whole_warps(self) -> bool:
        """Whether all 32 lanes are here of every warp that has one here."""
        if self._whole_warps is None:
            lanes = self.lanes
            self._whole_warps = self.full or bool(
                self.n % 32 == 0
                and not (lanes[::32] % 32).any()
                and (lanes[31::32] - lanes[::32] == 31).all()
            )
        return bool(self._whole_warps)

    @property
    def block_index(self) -> Lanes:
        """The block of the chunk that each lane is in; a single value if there is one block."""
        if self._block_index is None:
            self._block_index = take(self.chunk.block_of_lane, None if self.full else self.lanes)
        return self._block_index

    def repeat_blocks(self, blocks: Lanes) -> None:
        """Set the lanes' blocks to `blocks`, because some lanes are in the group several times."""
        self._block_index = blocks

    @property
    def key(self) -> tuple[int, ...]:
        """The place of the group: the program counters of its frames, outermost first.

        With a seed, the turn of its warps comes before them.
        """
        top = self.code.base + self.block
        if self.chunk.turns is not None:
            turn = int(self.chunk.turns[self.lanes[0] // 32])
            return (turn, *(f.code.base + f.block - 1 for f in self.frames), top)
        if not self.frames:
            return (top,)
        # A caller is at its call, which is the block before the one that it returns to. So groups
        # that have yet to make the call run before those that are in it, and these run before
        # those that have returned: all meet after the call.
        return (*(f.code.base + f.block - 1 for f in self.frames), top)

    def lane_at(self, index: int) -> int:
        """Return the chunk's lane that is at `index` of the group."""
        return int(self.lanes[index if index < self.n else 0])

    def with_registers(self, regs: list[Lanes]) -> Group:
        """Return a copy with other registers, and treat all their bits as defined."""
        return Group(
            self.chunk, self.lanes, self.code, regs, self.block, self.frames, self.local_base
        )

    def narrow(self, index: Lanes, slots: tuple[int, ...] = ()) -> Group:
        """Return some of the lanes, with only the registers `slots`, to run one instruction.

        The group does not change: the caller takes over the results of the instruction.
        """
        # The other registers are not needed, and cutting each of them would cost more than the
        # instruction does.
        regs = list(self.code.zeros)
        for slot in slots:
            regs[slot] = take(self.regs[slot], index)
        return Group(
            self.chunk, self.lanes[index], self.code, regs, self.block, self.frames, self.local_base
        )

    def split(self, index: Lanes, block: int) -> Group:
        """Return some of the lanes, going on at `block`; registers dead there are dropped.

        The group is to be used no more: its lanes are in the parts.
        """
        regs = list(self.code.zeros)
        for slot in self.code.blocks[block].live_in:
            regs[slot] = take(self.regs[slot], index)
        frames = [_narrow_frame(frame, index) for frame in self.frames]
        part = Group(self.chunk, self.lanes[index], self.code, regs, block, frames, self.local_base)
        # Each part has waited as long as the whole, so a loop that splits in every round still uses
        # up its patience.
        part.spin, part.spin_end = self.spin, self.spin_end
        if self.undefined:
            live_in = self.code.blocks[block].live_in
            part.undefined = taint.narrow(self.undefined, index, live_in)
        return part


class Frame(NamedTuple):
    """A function that waits for its call to return; it continues at `block`."""

    code: Code
    regs: list[Lanes]
    block: int
    local_base: int
    results: tuple[tuple[int, int], ...]
    undefined: Taints = NONE


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
    refused : dict of str to int
        The instructions that are not emulated, with the line of the first of each kind.
    """

    def __init__(self, function: Function, base: int) -> None:
        self.function = function
        self.base = base
        self.blocks: list[Block] = []
        self.zeros = [
            _zero(kind, function.slot_sizes.get(i, 0)) for i, kind in enumerate(function.slots)
        ]
        # The condition code is a register like others, behind those that the function names: so it
        # is split, merged and dropped by the same code.
        self.carry = len(self.zeros)
        self.zeros.append(np.zeros(1, bool))
        locals_ = [v for v in function.variables.values() if v.space == "local"]
        # Local variables of all scopes have places of their own, whether they live at the same time
        # or not.
        end = max((v.offset + v.size for v in locals_), default=0)
        # The next frame starts at a multiple of the largest alignment that a vector access needs.
        self.local_bytes = -(-end // 16) * 16
        self.refused: dict[str, int] = {}
        self._reachable: dict[int, set[int]] = {}

    def reaches(self, start: int, target: int) -> bool:
        """Tell whether control can get from block `start` to block `target`."""
        # Cache the blocks that can be reached: a barrier asks at every exit of a thread.
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


class End:
    """How a block ends: where its group goes next.

    `successors` are the blocks of the same function that can follow, `uses` the registers on
    which it depends besides a guard, and `results` those that it writes.
    """

    successors: tuple[int, ...] = ()
    uses: tuple[int, ...] = ()
    results: tuple[int, ...] = ()

    def run(self, group: Group, runner: Runner) -> int | None:
        """Return the block at which `group` continues; None if the scheduler took it over."""
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


@dataclass
class Arrival:
    """How a group arrives at a barrier.

    `count` is the number of threads expected, None for all of the block. `reduction` is
    ``popc``, ``and`` or ``or`` with a predicate for each lane; the result goes to `result`, a
    slot and its type.
    """

    instruction: Instruction
    number: int
    count: int | None
    following: int
    waits: bool = True
    reduction: str = ""
    predicate: Lanes | None = None
    result: int = -1


class Runner(Protocol):
    """The interface that runs the groups of a chunk, for the end of a block and for a barrier."""

    chunk: Chunk

    def ready(self, group: Group) -> None:
        """Let `group` run on from its block."""

    def go(self, group: Group, start: int, target: int) -> None:
        """Let `group`, which ended block `start`, run on at block `target`."""

    def arrive(self, group: Group, arrival: Arrival) -> int | None:
        """Bring `group` to a barrier; return the block to continue at if it need not wait."""

    def arrive_in_cluster(self, group: Group, instruction: Instruction) -> None:
        """Let `group` arrive at the barrier of its cluster."""

    def wait_in_cluster(self, group: Group, instruction: Instruction, following: int) -> int | None:
        """Return the block to continue at if `group` need not wait for its cluster."""

    def exit(self, group: Group) -> None:
        """End the threads of `group`."""

    def locate(self, fault: Fault, instruction: Instruction) -> None:
        """Fill in where a fault is, unless that is known."""

    def relate(self, fault: Fault, what: str, instruction: Instruction) -> None:
        """Add the place of another instruction to a fault."""

    def whereabouts(self) -> list[Related]:
        """Describe each place at which threads are."""
        raise NotImplementedError


def _narrow_frame(frame: Frame, index: Lanes) -> Frame:
    regs = list(frame.code.zeros)
    for slot in frame.code.blocks[frame.block].live_in:
        regs[slot] = take(frame.regs[slot], index)
    if not frame.undefined:
        return frame._replace(regs=regs)
    undefined = taint.narrow(frame.undefined, index, frame.code.blocks[frame.block].live_in)
    return frame._replace(regs=regs, undefined=undefined)


def _zero(kind: str, size: int) -> Any:
    # A parameter of a function is read by words of up to 16 bytes, at any offset that fits: its row
    # is as long as the last such word needs.
    if kind == "param":
        return np.zeros((1, -(-size // 16) * 16), np.uint8)
    if kind == "pred":
        return np.zeros(1, bool)
    # NumPy has no integers of 128 bits.
    if kind == "b128":
        return np.zeros((1, 2), np.uint64)
    return np.zeros(1, unsigned(kind))
