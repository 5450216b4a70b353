"""Which accesses of threads come before which: barriers, fences, releases and acquires."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine.barrier_clocks import BarrierClocks
from culaunch._emulator.machine.warp_order import WarpOrder
from culaunch._emulator.memory.how import BLOCK, CLUSTER, GRID

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.history import History
    from culaunch._emulator.types import Lanes

# The rows of `_known`: acquired and pending times for each scope, and one for bulk copies.
_ACQUIRED, _PENDING, _COPIES, _ROWS = 0, 3, 6, 7


class Ordering:
    """The order of the accesses of a chunk's threads, after those of earlier chunks too.

    Each thread has two times for each scope. Its accesses until the first one are published: a
    release, or a barrier, came after them. It has acquired the accesses until the second one: they
    were published before something that it has read, or before its last barrier. An access at time
    t comes before a later one if its thread has published until t, and the other thread has
    acquired until t. Whether both used the same flag or barrier is known only in part
    (`Records.released`), so some races are missed, but an order is never overlooked.

    Threads of a warp that wait for each other are ordered exactly (`WarpOrder`), and warps at
    barriers with a count (`BarrierClocks`).
    """

    def __init__(self, chunk: Chunk, history: History) -> None:
        self.chunk = chunk
        self.history = history
        size = chunk.size
        self.first = chunk.first_block * chunk.width
        self.warps = WarpOrder(chunk)
        self._clocks = BarrierClocks(chunk)
        self._cluster = chunk.width * chunk.launch.cluster.size
        grid = history.published[self.first : self.first + size]
        self._published = [np.zeros(size, np.int32), np.zeros(size, np.int32), grid]
        self._known: Lanes = np.zeros((_ROWS, size), np.int32)
        # When each lane last fenced, by scope, and when lanes of its warp last waited for it.
        self._fenced: Lanes = np.zeros((3, size), np.int32)
        self._met: Lanes = np.zeros(size, np.int32)
        # When all threads of each lane's block last waited for each other.
        self.met_block: Lanes = np.zeros(size, np.int32)
        # Nothing to spread, or to publish, until a thread has acquired, or fenced.
        self._has_acquired = self._has_fenced = False

    def ordered(self, lanes: Lanes, threads: Lanes, times: Lanes, *, strong: bool) -> Lanes:
        """Return whether each lane's access comes after those of other threads at `times`.

        A strong access also comes after accesses that its thread would acquire by a fence: without
        it, only the caches of the hardware could return older values.
        """
        local = threads - self.first
        here = (local >= 0) & (local < self.chunk.size)
        local = np.where(here, local, 0)
        published, acquired = self.history.published[threads], self._view(GRID, lanes, strong)
        for scope, width in ((CLUSTER, self._cluster), (BLOCK, self.chunk.width)):
            same = here & (local // width == lanes // width)
            published = np.where(same, self._published[scope][local], published)
            acquired = np.where(same, self._view(scope, lanes, strong), acquired)
        after: Lanes = (times <= published) & (times <= acquired)
        exact = self.warps.ordered(lanes, local, times) | self._clocks.ordered(lanes, local, times)
        return after | (here & exact)

    def known_of_each(self, lanes: Lanes) -> Lanes:
        """Return for each lane of the chunk the time until which one of `lanes` knows its accesses.

        This is the order of `ordered`, without what passes between clusters.
        """
        known = np.maximum(self.warps.known_of_each(lanes), self._clocks.known_of_each(lanes))
        for scope, width in ((CLUSTER, self._cluster), (BLOCK, self.chunk.width)):
            acquired = np.zeros(self.chunk.size // width, np.int32)
            np.maximum.at(acquired, lanes // width, self._known[_ACQUIRED + scope, lanes])
            both = np.minimum(self._published[scope], np.repeat(acquired, width))
            known = np.maximum(known, both)
        return known

    def knows_copies(self, lanes: Lanes) -> Lanes:
        """Return the time until which each lane has waited for bulk copies."""
        known: Lanes = self._known[_COPIES, lanes]
        return known

    def block_time(self, lanes: Lanes) -> Lanes:
        """Return the time until which each lane knows the accesses of its block."""
        known: Lanes = self._known[_ACQUIRED + BLOCK, lanes]
        return known

    def fence(self, lanes: Lanes, scope: int) -> None:
        """Record a fence."""
        now = self.history.tick()
        self._has_fenced = True
        for row in range(scope + 1):
            self._fenced[row, lanes] = now
            pending = self._known[_PENDING + row, lanes]
            known = self._known[_ACQUIRED + row]
            known[lanes] = np.maximum(known[lanes], pending)

    def release(self, lanes: Lanes, scope: int, *, releases: bool) -> bool:
        """Publish what strong writes of `lanes` make visible; return False if nothing is.

        A write that `releases` publishes all accesses of its thread, another one those before its
        thread's last fence. With them come the accesses of threads that its thread has met since.
        """
        if not (releases or self._has_fenced):
            return False
        now, width = self.history.now, self._cluster
        clusters = lanes // width
        for row in range(scope + 1):
            own = self._fenced[row, lanes]
            if releases:
                own = np.full_like(own, now)
            times = self._published[row]
            times[lanes] = np.maximum(times[lanes], own)
            # A barrier or __syncwarp before the fence publishes with it what others did before. A
            # fence of another thread before the barrier counts as well, as hardware allows.
            last = np.zeros(self.chunk.size // width, np.int32)
            np.maximum.at(last, clusters, own)
            which = np.unique(clusters)
            until = np.maximum(self._rows(self._fenced[row], which), last[which, None])
            met = np.maximum(self._met, np.maximum(*self._published[:GRID]))
            met = np.minimum(self._rows(met, which), until)
            times.reshape(-1, width)[which] = np.maximum(self._rows(times, which), met)
        return True

    def acquire(self, lanes: Lanes, released: Lanes, scope: int, *, acquires: bool) -> None:
        """Note that `lanes` have read what was released at these times: a fence acquires it."""
        if not released.any():
            return
        self._has_acquired = True
        for row in range(scope + 1):
            for kind in (_PENDING, _ACQUIRED) if acquires else (_PENDING,):
                np.maximum.at(self._known[kind + row], lanes, released)
        # The partner's own acquisitions come with it. The partner is not recorded: any of the
        # cluster will do.
        for row in (_ACQUIRED + GRID, _ACQUIRED + CLUSTER, _COPIES) if scope < GRID else (_COPIES,):
            best = self._known[row].reshape(-1, self._cluster).max(axis=1)[lanes // self._cluster]
            self._known[row, lanes] = np.maximum(self._known[row, lanes], best)

    def wait_for_copies(self, lanes: Lanes, completed: Lanes) -> None:
        """Note that `lanes` have waited at mbarriers for copies that completed at these times."""
        self._has_acquired = True
        np.maximum.at(self._known[_COPIES], lanes, completed)

    def meet(self, lanes: Lanes, masks: Lanes) -> None:
        """Record that lanes of a warp have waited for each other."""
        now = self.history.tick()
        self.warps.meet(lanes, masks, now)
        self._met[lanes] = now
        if self._has_acquired:
            here = np.zeros_like(self._known)
            here[:, lanes] = self._known[:, lanes]
            best = here.reshape(_ROWS, -1, 32).max(axis=2)
            self._known[:, lanes] = best[:, lanes // 32]

    def arrive(self, lanes: Lanes, scope: int, number: int | None = None) -> None:
        """Publish the accesses of lanes that arrive at a barrier; `number` if it has a count."""
        now = self.history.tick()
        for times in self._published[: scope + 1]:
            times[lanes] = now
        if number is not None:
            self._clocks.arrive(number, lanes, now)

    def leave(self, lanes: Lanes, scope: int, *, whole: bool = False) -> None:
        """Let lanes that leave a barrier acquire the accesses that others published there.

        `whole` says that they are whole blocks.
        """
        now = self.history.tick()
        if whole:
            self.met_block[lanes] = now
        self._share(lanes, scope)
        for row in range(scope + 1):
            self._known[_ACQUIRED + row, lanes] = now

    def leave_counted(self, number: int, lanes: Lanes, done: Lanes) -> None:
        """Let lanes acquire the accesses of those that arrived at a barrier with a count.

        It is complete in the blocks `done`.
        """
        self._clocks.leave(number, lanes, done)
        self._share(lanes, BLOCK)

    def _share(self, lanes: Lanes, scope: int) -> None:
        """Give lanes at a barrier what the threads around them have acquired."""
        if not self._has_acquired:
            return
        width = self._cluster if scope else self.chunk.width
        # A barrier stands in for the fence after a flag that one thread polls.
        known = self._known.copy()
        known[:_PENDING] = np.maximum(known[:_PENDING], known[_PENDING:_COPIES])
        best = known.reshape(_ROWS, -1, width).max(axis=2)
        self._known[:, lanes] = best[:, lanes // width]

    def _view(self, scope: int, lanes: Lanes, strong: bool) -> Lanes:
        known: Lanes = self._known[_ACQUIRED + scope, lanes]
        return np.maximum(known, self._known[_PENDING + scope, lanes]) if strong else known

    def _rows(self, values: Lanes, clusters: Lanes) -> Lanes:
        rows: Lanes = values.reshape(-1, self._cluster)[clusters]
        return rows
