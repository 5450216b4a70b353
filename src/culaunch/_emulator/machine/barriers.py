"""Barriers of a block: who has arrived, who waits, and who never comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.memory.how import BLOCK

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Arrival, Code, Group, Runner
    from culaunch._emulator.types import Lanes

_NO_LANES = np.zeros(0, np.int64)


class Barriers:
    """All barriers of a chunk."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.chunk = runner.chunk
        self.barriers: dict[int, _Barrier] = {}
        self.exits: dict[tuple[int, int], _Exit] = {}

    def arrive(self, group: Group, arrival: Arrival) -> int | None:
        """Bring `group` to a barrier; return the block to continue at if it need not wait."""
        chunk = self.chunk
        # Threads that exited before the others arrived are still reported. A barrier with an
        # explicit count (bar.sync a, b) defines its participants; all others may leave.
        if self.exits and arrival.count is None:
            for known in self.exits.values():
                self._check_exit(known, group, arrival)
        barrier = self.barriers.get(arrival.number)
        if barrier is None:
            barrier = self.barriers[arrival.number] = _Barrier(arrival.number, chunk.blocks)
        # The fast common case: all threads come together, and nothing is counted.
        everyone = group.n == chunk.alive_total and not barrier.waiters
        if everyone and arrival.count is None and not arrival.reduction and arrival.waits:
            self._forget_undefined()
            if chunk.races is not None:
                chunk.races.order.arrive(np.arange(chunk.size), BLOCK)
                chunk.races.order.leave(np.arange(chunk.size), BLOCK, whole=True)
            return arrival.following
        blocks = np.broadcast_to(group.block_index, (group.n,))
        counts = np.bincount(blocks, minlength=chunk.blocks)
        if chunk.races is not None:
            number = None if arrival.count is None else arrival.number
            chunk.races.order.arrive(group.lanes, BLOCK, number)
        here = counts > 0
        # A group may have threads of several blocks, and each block has its own barrier.
        barrier.arrived += counts
        barrier.expected[here] = -1 if arrival.count is None else arrival.count
        if arrival.predicate is not None:
            # Votes are only counted, because no instruction needs the vote of one lane.
            weights = np.broadcast_to(arrival.predicate, (group.n,))
            barrier.true += np.bincount(blocks[weights], minlength=chunk.blocks)
        if arrival.waits:
            # Its registers may go on to be split: the group waits at the block that follows.
            group.block = arrival.following
            barrier.waiters.append(_Waiter(group, arrival))
            self._release(barrier)
            return None
        self._release(barrier)
        return arrival.following

    def release(self) -> None:
        """Release the groups that no longer wait for threads that have exited."""
        for barrier in self.barriers.values():
            if barrier.waiters:
                self._release(barrier)

    def check_exit(self, group: Group) -> None:
        """Report threads that exit without reaching a barrier where others of their block wait.

        A thread that returned early is excused, as by the hardware. A thread that exits in code
        behind the barrier should have reached it. The position of a bare ``ret`` is unknown,
        because compilers merge all of them: it counts as an early return. It does not matter
        whether the others reach the barrier before the exit or after it.
        """
        bare = len(group.code.blocks[group.block].instructions) < 2
        if bare or group.n == self.chunk.alive_total:
            return
        key = (id(group.code), group.block)
        known = self.exits.get(key)
        if known is None:
            known = self.exits[key] = _Exit(group.code, group.block, self.chunk.blocks)
        # The first lane of each block is the one to name.
        blocks, first = np.unique(np.broadcast_to(group.block_index, group.n), return_index=True)
        # A later exit at the same place takes the place of an earlier one: any thread will do as
        # the one to name.
        known.lane[blocks] = group.lanes[first]
        for barrier in self.barriers.values():
            for waiter in barrier.waiters:
                self._check_exit(known, waiter.group, waiter.arrival)

    def report_stuck(self) -> None:
        """Raise the fault for a barrier that waits forever."""
        for number, barrier in self.barriers.items():
            # One waiter is enough for the report: the barrier has the numbers, and the notes say
            # where all the other threads are.
            for waiter in barrier.waiters:
                group = waiter.group
                block = int(group.block_index[0])
                missing = self._missing(block, [w.group for w in barrier.waiters])
                need = int(barrier.expected[block])
                need = int(self.chunk.alive_in_block[block]) if need < 0 else need
                fault = Fault(
                    LAUNCH_FAILED,
                    f"barrier {number} is never complete: {int(barrier.arrived[block])} of "
                    f"{counted(need, 'thread')} of the block arrived{missing}",
                    kind="deadlock",
                    lane=group.lane_at(0),
                    related=self.runner.whereabouts(),
                )
                self.runner.locate(fault, waiter.arrival.instruction)
                raise fault

    def _missing(self, block: int, groups: list[Group]) -> str:
        chunk = self.chunk
        # A live thread that is not among the waiters is missing; name the first one.
        alive = chunk.alive[block * chunk.width : (block + 1) * chunk.width].copy()
        for group in groups:
            lanes = group.lanes[group.lanes // chunk.width == block] - block * chunk.width
            alive[lanes] = False
        if not alive.any():
            return ""
        return f"; thread {chunk.place(int(np.flatnonzero(alive)[0]))[1]} did not"

    def _release(self, barrier: _Barrier) -> None:
        # Do not wait for exited threads: the number of live threads must arrive.
        need = np.where(barrier.expected < 0, self.chunk.alive_in_block, barrier.expected)
        done = (barrier.arrived > 0) & (barrier.arrived >= need)
        if not done.any():
            return
        # Free the barrier for its next use before any thread continues. The result of a reduction
        # belongs to the use that has just ended.
        arrived, true = barrier.arrived.copy(), barrier.true.copy()
        barrier.arrived[done] = 0
        barrier.true[done] = 0
        waiters, barrier.waiters = barrier.waiters, []
        self._check_same_place(waiters, done)
        lanes = []
        # The barrier may be complete in some blocks of a group and not in others.
        for waiter in waiters:
            # Only the chunk brings its blocks together, so some may be complete and others not.
            # Only lanes of complete blocks continue.
            group = waiter.group
            index = np.flatnonzero(np.broadcast_to(done[group.block_index], (group.n,)))
            if not index.shape[0]:
                barrier.waiters.append(waiter)
                continue
            if index.shape[0] < group.n:
                rest = np.flatnonzero(~done[group.block_index])
                barrier.waiters.append(_Waiter(group.split(rest, group.block), waiter.arrival))
                group = group.split(index, group.block)
            _write_result(group, waiter.arrival, arrived, true)
            lanes.append(group.lanes)
            self.runner.ready(group)
        self._forget_undefined()
        if self.chunk.races is not None:
            self._order(np.concatenate([_NO_LANES, *lanes]), barrier, done)

    def _forget_undefined(self) -> None:
        if self.chunk.shared.shadow is not None:
            self.chunk.shared.shadow.on_barrier()

    def _order(self, lanes: Lanes, barrier: _Barrier, done: Lanes) -> None:
        """Record that `lanes` leave a barrier, which is complete in the blocks `done`."""
        order = self.chunk.races.order
        is_counted = barrier.expected >= 0
        by_count = is_counted[lanes // self.chunk.width]
        # The threads of a block that have exited count as having arrived at a barrier of it.
        gone = np.repeat(done & ~is_counted, self.chunk.width) & ~self.chunk.alive
        everyone = np.concatenate([lanes[~by_count], np.flatnonzero(gone)])
        if everyone.shape[0]:
            order.arrive(everyone, BLOCK)
            order.leave(everyone, BLOCK, whole=True)
        if (done & is_counted).any():
            order.leave_counted(barrier.number, lanes[by_count], done & is_counted)

    def _check_exit(self, known: _Exit, group: Group, arrival: Arrival) -> None:
        # Paths are known only within one function. A barrier in a called function says nothing
        # about where the call's block leads.
        if arrival.count is not None or group.code is not known.code:
            return
        # Code that is unreachable from the barrier lies before it, or on another branch.
        if not known.code.reaches(arrival.following, known.block):
            return
        lanes = known.lane[group.block_index]
        index = np.flatnonzero(lanes >= 0)
        if index.shape[0]:
            instruction = arrival.instruction
            fault = Fault(
                LAUNCH_FAILED,
                f"a thread exits without reaching the {instruction.opcode} of PTX line "
                f"{instruction.line}, where other threads of its block wait",
                kind="barrier-divergence",
                lane=int(lanes[index[0]]),
            )
            self.runner.relate(fault, "the barrier", instruction)
            self.runner.locate(fault, known.code.blocks[known.block].instructions[-1])
            raise fault

    def _check_same_place(self, waiters: list[_Waiter], done: Lanes) -> None:
        """Report a barrier for the whole block whose threads reached different instructions."""
        first: dict[int, _Waiter] = {}
        for waiter in waiters:
            arrival = waiter.arrival
            if arrival.count is not None or arrival.number or arrival.instruction.name != "bar":
                continue
            for block in np.unique(waiter.group.block_index):
                if not done[block]:
                    continue
                # Compilers emit `bar.sync 0` for __syncthreads, which all threads of a block must
                # reach at the same place (CUDA C++ Programming Guide, "Synchronization
                # Functions"). `barrier` and other numbers may stand at several places.
                known = first.setdefault(int(block), waiter)
                if known.arrival.instruction is waiter.arrival.instruction:
                    continue
                fault = Fault(
                    LAUNCH_FAILED,
                    f"barrier {waiter.arrival.number} is divergent: threads of one block wait at "
                    f"PTX lines {known.arrival.instruction.line} and "
                    f"{waiter.arrival.instruction.line}",
                    kind="barrier-divergence",
                    lane=waiter.group.lane_at(0),
                )
                self.runner.relate(fault, "the other barrier", known.arrival.instruction)
                self.runner.locate(fault, waiter.arrival.instruction)
                raise fault


@dataclass
class _Waiter:
    group: Group
    arrival: Arrival


class _Barrier:
    """One of the sixteen barriers, in every block of the chunk.

    Attributes
    ----------
    arrived, expected, true : numpy.ndarray
        For each block: how many threads arrived, how many must arrive (-1: all live threads), and
        how many brought a true predicate.
    waiters : list
        The groups that wait; a group may have threads of several blocks.
    """

    def __init__(self, number: int, blocks: int) -> None:
        self.number = number
        self.arrived: Lanes = np.zeros(blocks, np.int64)
        self.expected: Lanes = np.full(blocks, -1, np.int64)
        self.true: Lanes = np.zeros(blocks, np.int64)
        self.waiters: list[_Waiter] = []


class _Exit:
    """A place at which threads exited, with one of them for each block of the chunk."""

    def __init__(self, code: Code, block: int, blocks: int) -> None:
        self.code = code
        self.block = block
        self.lane: Lanes = np.full(blocks, -1, np.int64)


def _write_result(group: Group, arrival: Arrival, arrived: Lanes, true: Lanes) -> None:
    if not arrival.reduction:
        return
    block = group.block_index
    if arrival.reduction == "popc":
        value: Lanes = true[block].astype(np.uint32)
    elif arrival.reduction == "and":
        # Every thread that arrived brought a predicate. Exited threads count for neither side.
        value = true[block] == arrived[block]
    else:
        value = true[block] > 0
    if arrival.result >= 0:
        group.regs[arrival.result] = value
