"""Choose which group runs next, run it block by block, and bring groups back together."""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

from culaunch._emulator._fault import LAUNCH_FAILED, Fault
from culaunch._emulator._simt._barriers import Barriers
from culaunch._emulator._simt._group import Group, merge
from culaunch._emulator._simt._warp_sync import WarpSync
from culaunch._emulator._simt._whereabouts import timeout, whereabouts
from culaunch._errors import InternalError

if TYPE_CHECKING:
    from culaunch._emulator._memory._races import Races
    from culaunch._emulator._ptx._syntax import Instruction
    from culaunch._emulator._simt._chunk import Chunk
    from culaunch._emulator._simt._code import Code
    from culaunch._emulator._types import Lanes

__all__ = ["Scheduler"]

# A group that waits in a loop lets the others go first after this many turns.
_PATIENCE = 16


class Scheduler:
    """Runs the threads of a chunk.

    The group with the lowest program counter runs first: what diverged meets again where its
    paths join. A group in a loop that reads what others write loses its turn to them now and
    then, so that waiting for another thread ends.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.pending: dict[tuple[int, ...], list[Group]] = {}
        self.queue: list[tuple[int, tuple[int, ...]]] = []
        self.barriers = Barriers(self)
        self.warp_sync = WarpSync(self)
        shadow = chunk.shared.shadow
        self.races: Races | None = None if shadow is None else shadow.races
        limit = chunk.options.time_limit
        self.deadline = None if limit is None else time.monotonic() + limit

    def run(self, code: Code, regs: list[Lanes]) -> None:
        """Run `code` from its start with every thread of the chunk."""
        group = Group(self.chunk, self.chunk.lanes(), code, regs)
        if group.n:
            self.ready(group)
        while self.queue:
            _, key = heapq.heappop(self.queue)
            parts = self.pending.pop(key, None)
            if parts is not None:
                self._run_group(merge(parts))
            if not self.queue:
                self.warp_sync.retry()
        if self.chunk.alive_total:
            self._report_stuck()

    def ready(self, group: Group) -> None:
        """Let `group` run on from its block."""
        if group.spin and not group.block <= group.spin_end:
            group.spin = 0
        key = group.key
        parts = self.pending.get(key)
        if parts is None:
            self.pending[key] = [group]
        else:
            parts.append(group)
            if group.spin // _PATIENCE >= min(p.spin for p in parts) // _PATIENCE:
                return
        heapq.heappush(self.queue, (group.spin // _PATIENCE, key))

    def go(self, group: Group, start: int, target: int) -> None:
        """Let `group`, which ended block `start`, run on at block `target`."""
        self._move(group, start, target)
        self.ready(group)

    def exit(self, group: Group) -> None:
        """End the threads of `group`."""
        self.barriers.check_exit(group)
        self.chunk.exit(group.lanes)
        self.barriers.release()

    def locate(self, fault: Fault, instruction: Instruction) -> None:
        """Fill in where a fault is, unless that is known."""
        if fault.position is None:
            fault.position = self.chunk.launch.position(instruction)
        if fault.lane is not None and fault.block is None:
            fault.block, fault.thread = self.chunk.place(fault.lane)

    def _run_group(self, arriving: Group) -> None:
        group = arriving
        undefined, reads = self.chunk.undefined, self.chunk.undefined_reads
        while True:
            if self.deadline is not None and time.monotonic() > self.deadline:
                raise timeout(self, group)
            block = group.code.blocks[group.block]
            if block.sync is not None:
                admitted = self.warp_sync.admit(group, block)
                if admitted is None:
                    return
                group = admitted
                if self.races is not None:
                    self.races.order.meet(group.lanes, block.sync(group))
            # A call or a return changes the group's registers: these are the block's own.
            regs, zeros = group.regs, group.code.zeros
            at = -1
            try:
                watched = 0
                if not group.undefined:
                    watched = len(block.ops)
                    for at, op in enumerate(block.ops):
                        op(group)
                        if reads:
                            undefined.arrive(group, block.instructions[at])
                            watched = at + 1
                            break
                for at in range(watched, len(block.ops)):
                    undefined.step(group, block.ops[at], block.instructions[at])
                at = -1
                if group.undefined:
                    undefined.check_end(group, block)
                following = block.end.run(group, self)
                if reads:
                    undefined.used_by_end(block.instructions[-1])
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
            if group.regs is regs:
                self._move(group, block.index, following)
            else:
                group.block = following
            for slot in block.dead:
                regs[slot] = zeros[slot]
            if group.undefined and group.regs is regs:
                undefined.forget(group, block.dead)
            if self.pending and self._others_first(group):
                self.ready(group)
                return

    def _move(self, group: Group, start: int, target: int) -> None:
        code = group.code
        if target <= start < len(code.blocks) and code.blocks[start].waits:
            group.spin += 1
            group.spin_end = max(start, group.spin_end)
        group.block = target

    def _others_first(self, group: Group) -> bool:
        while self.queue and self.queue[0][1] not in self.pending:
            heapq.heappop(self.queue)
        if not self.queue:
            return False
        if group.spin and not group.block <= group.spin_end:
            group.spin = 0
        return self.queue[0] <= (group.spin // _PATIENCE, group.key)

    def _report_stuck(self) -> None:
        self.barriers.report_stuck()
        self.warp_sync.report_stuck()
        raise Fault(LAUNCH_FAILED, "threads are left that cannot run", notes=whereabouts(self))
