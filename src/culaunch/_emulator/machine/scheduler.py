"""Choose which group runs next, run it block by block, and bring groups back together."""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, Protocol

import numpy as np

from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.machine.barriers import Barriers
from culaunch._emulator.machine.cluster_barrier import ClusterBarrier
from culaunch._emulator.machine.merge import merge
from culaunch._emulator.machine.state import Group
from culaunch._emulator.machine.warp_sync import WarpSync
from culaunch._emulator.machine.whereabouts import next_instruction, timeout, whereabouts
from culaunch._emulator.report import Related
from culaunch._errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.races import Races
    from culaunch._emulator.machine.state import Arrival, Block, Code, Op
    from culaunch._emulator.machine.whereabouts import Standing
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

# A group that waits in a loop lets the others go first after this many turns.
_PATIENCE = 16


class Scheduler:
    """Runs the threads of a chunk, group by group.

    Threads start together, and split where a branch takes them to different places. The group with
    the lowest program counter runs first. Compilers put the place where the paths of a branch join
    behind all of them. Each path therefore waits there for the others, and all continue as one
    group.

    With only this order, a group could wait forever in a loop for a value that a group behind the
    loop has to write. Therefore a group counts its rounds in a loop that reads values that others
    may write. After `_PATIENCE` rounds it stands behind the groups that have waited less.

    Attributes
    ----------
    pending : dict
        The groups that can run, by their place. Groups at one place are merged when its turn comes.
    queue : list
        A heap of places. Those whose groups waited less come first, and among them the lowest
        program counter. A place that is no longer in `pending` is skipped.
    """

    def __init__(self, chunk: Chunk, watch: Watch) -> None:
        self.chunk = chunk
        self.watch = watch
        self.pending: dict[tuple[int, ...], list[Group]] = {}
        self.queue: list[tuple[int, tuple[int, ...]]] = []
        self.barriers = Barriers(self)
        self.cluster_barrier: ClusterBarrier | None = None  # until a thread comes to it
        self.races: Races | None = chunk.races
        self.warp_sync = WarpSync(self, self.races)
        limit = chunk.options.time_limit
        self.deadline = None if limit is None else time.monotonic() + limit

    def run(self, code: Code, regs: list[Lanes]) -> None:
        """Run `code` from its start with every thread of the chunk."""
        lanes, turns = self.chunk.lanes(), self.chunk.turns
        if turns is None:
            parts = [lanes]
        else:
            parts = [lanes[turns[lanes // 32] == turn] for turn in np.unique(turns)]
        for part in parts:
            group = Group(self.chunk, part, code, list(regs))
            if group.n:
                self.ready(group)
        # A group is in only one place at any time: pending here, parked by `warp_sync`, waiting in
        # `barriers`, or running. The code that releases a group puts it back with `ready`.
        while self.queue:
            _, key = heapq.heappop(self.queue)
            groups = self.pending.pop(key, None)
            if groups is not None:
                self._run_group(merge(groups))
            if not self.queue:
                # Nobody can run. The lanes of a warp that others wait for may have exited, and
                # who has exited is not waited for.
                self.warp_sync.retry()
        if self.chunk.alive_total:
            self._report_stuck()

    def ready(self, group: Group) -> None:
        """Let `group` run on from its block."""
        _end_wait(group)
        # The key is both a place and a priority. Tuples compare from the outermost frame on, so the
        # group with the earlier call goes first, whatever the callee's address.
        key = group.key
        parts = self.pending.setdefault(key, [])
        # The place is already in the queue, unless it was empty. Insert it again if this group
        # makes it come earlier. The old entry is then skipped.
        if not parts or group.spin // _PATIENCE < min(part.spin for part in parts) // _PATIENCE:
            heapq.heappush(self.queue, (group.spin // _PATIENCE, key))
        parts.append(group)

    def go(self, group: Group, start: int, target: int) -> None:
        """Let `group`, which ended block `start`, run on at block `target`."""
        self._move(group, start, target)
        self.ready(group)

    def arrive(self, group: Group, arrival: Arrival) -> int | None:
        """Bring `group` to a barrier; return the block to continue at if it need not wait."""
        return self.barriers.arrive(group, arrival)

    def arrive_in_cluster(self, group: Group, instruction: Instruction) -> None:
        """Let `group` arrive at the barrier of its cluster."""
        self._barrier_of_clusters().arrive(group, instruction)

    def wait_in_cluster(self, group: Group, instruction: Instruction, following: int) -> int | None:
        """Return the block to continue at if `group` need not wait for its cluster."""
        return self._barrier_of_clusters().wait(group, instruction, following)

    def exit(self, group: Group) -> None:
        """End the threads of `group`."""
        # The check comes before the lanes are taken out, since it asks who is alive; barriers are
        # released after that, since they count by it.
        self.barriers.check_exit(group)
        self.chunk.exit(group.lanes)
        self.barriers.release()
        if self.cluster_barrier is not None:
            self.cluster_barrier.release()

    def locate(self, fault: Fault, instruction: Instruction) -> None:
        """Fill in where a fault is, unless that is known."""
        if fault.position is None:
            fault.position = self.chunk.launch.position(instruction)
        if fault.lane is not None and fault.block is None:
            fault.block, fault.thread = self.chunk.place(fault.lane)

    def relate(self, fault: Fault, what: str, instruction: Instruction) -> None:
        """Add the place of another instruction to a fault."""
        position = self.chunk.launch.position(instruction)
        fault.related.append(Related(f"{what}: {position}: {position.text.strip()}", position))

    def whereabouts(self, running: Group | None = None) -> list[Related]:
        """Describe each place at which threads are, `running` first."""
        return whereabouts(self.chunk, self._groups(running))

    def _barrier_of_clusters(self) -> ClusterBarrier:
        if self.cluster_barrier is None:
            self.cluster_barrier = ClusterBarrier(self)
        return self.cluster_barrier

    def _groups(self, running: Group | None) -> Iterator[Standing]:
        if running is not None:
            yield "running", running, next_instruction(running)
        for parts in self.pending.values():
            for group in parts:
                yield "ready to run", group, next_instruction(group)
        for group in self.warp_sync.parked.values():
            yield "waiting for lanes of the warp", group, next_instruction(group)
        for barrier in self.barriers.barriers.values():
            for waiter in barrier.waiters:
                yield "waiting at a barrier", waiter.group, waiter.arrival.instruction
        for parked, instruction in self.cluster_barrier.waiters if self.cluster_barrier else ():
            yield "waiting at the barrier of the cluster", parked, instruction

    def _timeout(self, running: Group) -> Fault:
        return timeout(self.chunk, running, self.whereabouts(running))

    def _run_group(self, arriving: Group) -> None:
        # A group continues from block to block without coming back here, as long as no other group
        # is in front. Most kernels have one group nearly always, and then the queue costs nothing.
        group = arriving
        watch, reads = self.watch, self.chunk.undefined_reads
        observer = self.chunk.options.observer
        while True:
            # Once a block is often enough: blocks are short, and an instruction of all lanes takes
            # far longer than the clock does.
            if self.deadline is not None and time.monotonic() > self.deadline:
                raise self._timeout(group)
            block = group.code.blocks[group.block]
            # The first instruction of this block makes the lanes of a warp wait for each other.
            # Lanes whose partners have not arrived are parked.
            if block.sync is not None:
                admitted = self.warp_sync.admit(group, block)
                if admitted is None:
                    return
                group = admitted
                # Lanes that met know everything that the others did before.
                if self.races is not None:
                    self.races.order.meet(group.lanes, block.sync(group))
            ops = block.ops if observer is None else observer.begin(block, group)
            if self.races is not None:
                ops = self.races.history.watch(ops, block)
            # A call or a return changes the group's registers: these are the block's own.
            regs, zeros = group.regs, group.code.zeros
            # The instruction that a fault is about; the block's last one when its end runs.
            at = -1
            try:
                # Undefined registers are rare, and following them is slow. A group without any runs
                # without that, until an instruction reads an undefined value. From number `watched`
                # on, the engine that follows undefined values runs the instructions.
                watched = 0
                if not group.undefined:
                    watched = len(ops)
                    for at, op in enumerate(ops):
                        op(group)
                        if reads:
                            watch.arrive(group, block.instructions[at])
                            watched = at + 1
                            break
                for at in range(watched, len(ops)):
                    watch.step(group, ops[at], block.instructions[at])
                at = -1
                if observer is not None:
                    observer.end(block, group)
                if group.undefined:
                    watch.check_end(group, block)
                # The end may hand the group's lanes to the scheduler in parts. Then it returns
                # None, and the group must not be used any more.
                following = block.end.run(group, self)
                if reads:
                    watch.used_by_end(block.instructions[-1])
            # The user wants to see a fault of the kernel. Every other exception here is a defect of
            # the emulator, and is reported as one, with the line.
            except Fault as fault:
                self.locate(fault, block.instructions[at])
                raise
            except Exception as error:
                where = self.chunk.launch.position(block.instructions[at])
                raise InternalError(
                    f"the emulator failed on PTX line {where.line}: {where.text}"
                ) from error
            if following is None:
                return
            # The same registers: it is still in the function in which the block began. Drop the
            # registers that are dead after the block: splits and merges then need not copy them.
            if group.regs is regs:
                self._move(group, block.index, following)
            else:
                group.block = following
            # Change the list itself, to free arrays as soon as they are unused: a chunk's register
            # is as large as the launch is wide.
            for slot in block.dead:
                regs[slot] = zeros[slot]
            if group.undefined and group.regs is regs:
                watch.forget(group, block.dead)
            # Another group may be behind this one now. Then that group goes first.
            if self.pending and self._others_first(group):
                self.ready(group)
                return

    def _move(self, group: Group, start: int, target: int) -> None:
        # A jump back out of a block that may wait is a round of a loop in which the group waits.
        # The loop ends at the last block that was jumped back from.
        code = group.code
        if target <= start and code.blocks[start].waits:
            group.spin += 1
            group.spin_end = max(start, group.spin_end)
        group.block = target

    def _others_first(self, group: Group) -> bool:
        """Return whether another group's turn comes before the running `group`.

        A group at the very same place comes first, too: then both continue as one.
        """
        # Places that `ready` put in twice, or whose groups went on, are left in the heap and
        # skipped: to take something out of its middle would cost more.
        while self.queue and self.queue[0][1] not in self.pending:
            heapq.heappop(self.queue)
        if not self.queue:
            return False
        _end_wait(group)
        # With equal place and patience the other group also comes first: it is taken out and merged
        # with this group, and both run as one.
        return self.queue[0] <= (group.spin // _PATIENCE, group.key)

    def _report_stuck(self) -> None:
        self.barriers.report_stuck()
        if self.cluster_barrier is not None:
            self.cluster_barrier.report_stuck()
        self.warp_sync.report_stuck()
        raise Fault(
            LAUNCH_FAILED,
            "threads are left that cannot run",
            kind="deadlock",
            related=self.whereabouts(),
        )


def _end_wait(group: Group) -> None:
    """Forget that a group has waited, once it is behind the loop in which it did."""
    if group.spin and group.block > group.spin_end:
        group.spin = 0


class Watch(Protocol):
    """The code that follows undefined values from instruction to instruction."""

    def step(self, group: Group, op: Op, instruction: Instruction) -> None:
        """Run an instruction of a group that has undefined registers, and mark its results."""

    def arrive(self, group: Group, instruction: Instruction) -> None:
        """Mark the registers to which `instruction`, which has run, read undefined bytes."""

    def check_end(self, group: Group, block: Block) -> None:
        """Report undefined values that decide the end of `block`; forget values that it writes."""

    def used_by_end(self, instruction: Instruction) -> None:
        """Report an undefined value that a function of the runtime has read."""

    def forget(self, group: Group, slots: Collection[int]) -> None:
        """Drop registers that no later instruction reads."""
