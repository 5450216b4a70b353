"""Fences between the proxies: which writes of threads the asynchronous proxy may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine.records import Found

if TYPE_CHECKING:
    from culaunch._emulator.machine.ordering import Ordering
    from culaunch._emulator.machine.records import Access, Records
    from culaunch._emulator.types import Lanes


class ProxyFences:
    """The last ``fence.proxy.async`` after the writes of each lane to shared memory.

    Bulk copies, tensor copies and products of matrices read shared memory through the asynchronous
    proxy. A write of a thread is visible there after a fence of this thread, or of one that knows
    the write. Whether the reader knows of the fence is not recorded, so this race is missed.
    """

    def __init__(self, order: Ordering, size: int, first: int) -> None:
        self._order = order
        self._first = first
        # The time until which each lane's writes are fenced.
        self._until: Lanes = np.zeros(size, np.int32)

    def fence(self, lanes: Lanes) -> None:
        """Record a fence of `lanes`, after their own writes and those that they know."""
        self._until = np.maximum(self._until, self._order.known_of_each(lanes))
        self._until[lanes] = self._order.history.tick()

    def unfenced(self, records: Records, access: Access) -> Found:
        """Return the units of an access to shared memory that a thread wrote without a fence."""
        # The results of copies have a writer, too, but nobody who stored them.
        at = access.at
        writer = records.writer.thread[at]
        index = np.flatnonzero((records.storer.thread[at] != 0) & (writer != 0))
        threads, times = writer[index] - 1, records.writer.time[at[index]]
        late = times > self._until[threads - self._first]
        return Found(index, threads, times).at(np.flatnonzero(late))
