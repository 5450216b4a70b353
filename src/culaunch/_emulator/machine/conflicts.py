"""Search for the accesses of other threads that are not ordered before an access."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine.records import Found
from culaunch._emulator.memory.how import BLOCK, PLAIN

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.ordering import Ordering
    from culaunch._emulator.machine.records import Access, Records, Slot
    from culaunch._emulator.memory.how import How
    from culaunch._emulator.types import Lanes


class Conflicts:
    """Compares accesses with recorded ones, by the order of a chunk."""

    def __init__(self, chunk: Chunk, order: Ordering) -> None:
        self.order = order
        self._width = chunk.width
        self._clusters = chunk.launch.cluster.size

    def unordered(
        self,
        records: Records,
        slot: Slot,
        access: Access,
        how: How,
        change: Lanes | None = None,
    ) -> Found:
        """Return the units at which another thread's access is not ordered before this one."""
        if not slot.used:
            return _NOTHING
        thread = slot.thread[access.at]
        # Only where another thread was is there anything to ask: mostly nowhere.
        suspect = (thread != 0) & (thread != access.threads + 1)
        if change is not None:
            suspect &= change
        # The usual order in shared memory, which is quick to see: a barrier of the whole block.
        if records.space == "shared" and self._clusters == 1:
            suspect &= slot.time[access.at] > self.order.met_block[access.lanes]
        index = np.flatnonzero(suspect)
        if not index.shape[0]:
            return _NOTHING
        others, times = thread[index] - 1, slot.time[access.at[index]]
        known = self.order.ordered(access.lanes[index], others, times, strong=how.strong)
        left = np.flatnonzero(~known)
        return Found(index[left], others[left], times[left]) if left.shape[0] else _NOTHING

    def readers(
        self, records: Records, slot: Slot, access: Access, how: How, change: Lanes | None = None
    ) -> Found:
        """Return the reads that are not ordered before a write."""
        found = self.unordered(records, slot, access, how, change)
        if records.space != "global" or not found.units.shape[0]:
            return found
        # A value that changes after a read matters only if the thread uses it. Whether it will is
        # not known yet, but some loads are known to be for nothing in part of the threads.
        times, index = np.unique(found.times, return_inverse=True)
        used = np.array([not self.order.history.may_be_idle(time) for time in times.tolist()])
        return found.at(np.flatnonzero(used[index]))

    def updaters(
        self, records: Records, access: Access, how: How, change: Lanes | None = None
    ) -> Found:
        """Return the strong accesses that are not ordered before a plain one."""
        # A thread that was the last to update a word has seen all updates before its own.
        last = records.updaters.last
        if not last.used:
            return _NOTHING
        others = last.thread[access.at] != access.threads + 1
        others = others if change is None else others & change
        found = self.unordered(records, records.updaters.first, access, how, others)
        return found if found.units.shape[0] else self.unordered(records, last, access, how, others)

    def narrow(self, records: Records, access: Access, how: How) -> Found:
        """Return the strong accesses of other blocks that one of the scopes does not include."""
        if records.space != "global":
            return _NOTHING
        found = self.unordered(records, records.updaters.last, access, PLAIN)
        foreign = found.threads // self._width != access.threads[found.units] // self._width
        narrow = (self.order.history.scopes(found.times) == BLOCK) | (how.scope == BLOCK)
        return found.at(np.flatnonzero(foreign & narrow))


_NONE = np.zeros(0, np.int64)
_NOTHING = Found(_NONE, _NONE, _NONE)
