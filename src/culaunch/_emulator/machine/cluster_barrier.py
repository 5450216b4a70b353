"""The barrier of a cluster: every thread arrives, and waits, perhaps later, for all the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.memory.how import CLUSTER

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group, Runner
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

# The phase of a thread that has not arrived since it last waited.
_ABSENT = -1


class ClusterBarrier:
    """The barriers of all clusters of a chunk.

    A phase ends when every thread of the cluster that has not exited has arrived. A waiting thread
    continues once the phase in which it arrived has ended.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.chunk = chunk = runner.chunk
        self.size = chunk.launch.cluster.size
        self.waiters: list[ClusterWaiter] = []
        clusters = chunk.blocks // self.size
        self._phase: Lanes = np.zeros(clusters, np.int64)
        self._arrived: Lanes = np.zeros(clusters, np.int64)
        self._phase_of: Lanes = np.full(chunk.size, _ABSENT, np.int64)

    def arrive(self, group: Group, instruction: Instruction) -> None:
        """Let every thread of `group` arrive."""
        twice = np.flatnonzero(self._phase_of[group.lanes] != _ABSENT)
        if twice.shape[0]:
            self._refuse(group, instruction, int(twice[0]), "arrives twice with no wait in between")
        if self.chunk.races is not None:
            self.chunk.races.order.arrive(group.lanes, CLUSTER)
        clusters = self._clusters(group)
        self._phase_of[group.lanes] = self._phase[clusters]
        self._arrived += np.bincount(clusters, minlength=self._arrived.shape[0])
        self.release()

    def wait(self, group: Group, instruction: Instruction, following: int) -> int | None:
        """Return the block to continue at for a group that need not wait."""
        never = np.flatnonzero(self._phase_of[group.lanes] == _ABSENT)
        if never.shape[0]:
            self._refuse(group, instruction, int(never[0]), "waits without having arrived")
        group.block = following
        if self._passed(group).all():
            self._leave(group)
            return following
        self.waiters.append(ClusterWaiter(group, instruction))
        return None

    def release(self) -> None:
        """End the phases in which all blocks have arrived, and resume their waiters."""
        alive = self.chunk.alive_in_block.reshape(-1, self.size).sum(axis=1)
        done = (self._arrived > 0) & (self._arrived >= alive)
        if not done.any():
            return
        self._phase[done] += 1
        self._arrived[done] = 0
        if self.chunk.shared.shadow is not None:
            self.chunk.shared.shadow.on_barrier()
        if self.chunk.races is not None:
            # Threads that have exited count as having arrived.
            ended = np.repeat(done, self.size * self.chunk.width) & ~self.chunk.alive
            self.chunk.races.order.arrive(np.flatnonzero(ended), CLUSTER)
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            group = waiter.group
            passed = self._passed(group)
            if not passed.all():
                rest = group.split(np.flatnonzero(~passed), group.block) if passed.any() else group
                self.waiters.append(ClusterWaiter(rest, waiter.instruction))
                if not passed.any():
                    continue
                group = group.split(np.flatnonzero(passed), group.block)
            self._leave(group)
            self.runner.ready(group)

    def report_stuck(self) -> None:
        """Raise the fault for a barrier that waits forever."""
        for group, instruction in self.waiters:
            cluster = int(self._clusters(group)[0])
            blocks = slice(cluster * self.size, (cluster + 1) * self.size)
            fault = Fault(
                LAUNCH_FAILED,
                f"the cluster's barrier is never complete: {int(self._arrived[cluster])} of "
                f"{counted(int(self.chunk.alive_in_block[blocks].sum()), 'thread')} arrived",
                kind="deadlock",
                lane=group.lane_at(0),
                related=self.runner.whereabouts(),
            )
            self.runner.locate(fault, instruction)
            raise fault

    def _clusters(self, group: Group) -> Lanes:
        return np.broadcast_to(group.block_index // self.size, (group.n,))

    def _leave(self, group: Group) -> None:
        self._phase_of[group.lanes] = _ABSENT
        if self.chunk.races is not None:
            self.chunk.races.order.leave(group.lanes, CLUSTER)

    def _passed(self, group: Group) -> Lanes:
        return self._phase[self._clusters(group)] > self._phase_of[group.lanes]

    def _refuse(self, group: Group, instruction: Instruction, index: int, what: str) -> None:
        fault = Fault(
            LAUNCH_FAILED,
            f"a thread {what} at the cluster's barrier",
            kind="barrier-divergence",
            lane=group.lane_at(index),
        )
        self.runner.locate(fault, instruction)
        raise fault


class ClusterWaiter(NamedTuple):
    """Threads that wait at the barrier of their cluster."""

    group: Group
    instruction: Instruction
