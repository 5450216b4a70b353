"""Asynchronous work that has been started, and ends when its thread has waited for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._emulator.machine.records import Access, Records
    from culaunch._emulator.types import Lanes


class AsyncCopies:
    """The copies of a chunk, of one of the kinds with groups, for which no thread has waited.

    The emulator copies at once, which is one of the orders that the hardware may choose; this
    records the results that a kernel must not rely on. Products of matrices are one of
    these kinds: they read their factors.

    Parameters
    ----------
    owners : numpy.ndarray
        A number for each lane: a wait also ends the copies of other lanes with its number.
    """

    def __init__(self, owners: Lanes) -> None:
        self._owners = owners
        self._groups: Lanes = np.zeros(owners.shape, np.int64)
        self._copies: list[_Copy] = []

    def start(self, records: Records, access: Access, *, reads: bool = False) -> None:
        """Start copies to the units of an access, or from them."""
        records.has_copies = True
        (records.copied_from if reads else records.copying).put(access, slice(None))
        number = self._groups[access.lanes]
        self._copies.append(_Copy(records, access, number, records.unit, reads))

    def commit(self, lanes: Lanes) -> None:
        """Make a group of the copies that each lane has started since its last group."""
        self._groups[lanes] += 1

    def finish(
        self, lanes: Lanes, newest: int | None, *, only_reads: bool = False
    ) -> Iterator[tuple[Records, Access, bool]]:
        """End the copies of `lanes` and yield their units, and whether they read them.

        Parameters
        ----------
        newest : int or None
            How many of the newest groups continue. None also ends copies without a group.
        only_reads : bool
            Whether only the reads of the copies end.
        """
        # A copy belongs to the group that its lane will commit next: the lane's count of commits.
        # A wait for groups lets the newest ones of each lane continue. A wait for all also ends
        # copies without a group, which have the number of the lane's next commit.
        until = np.zeros(self._groups.shape, np.int64)
        limit = self._groups[lanes] + (1 if newest is None else -newest)
        np.maximum.at(until, self._owners[lanes], limit)
        copies, self._copies = self._copies, []
        # Copies started by another lane of the same instruction stay. A thread waits only for its
        # own copies, and only a barrier makes them visible to others.
        for copy in copies:
            done = copy.number < until[self._owners[copy.access.lanes]]
            if only_reads and not copy.reads:
                done[:] = False
            if done.any():
                ended = copy.part(done).access
                (copy.records.copied_from if copy.reads else copy.records.copying).clear(ended.at)
                yield copy.records, ended, copy.reads
            if not done.all():
                self._copies.append(copy.part(~done))


class _Copy(NamedTuple):
    """Units that are copied, with the number of the group, and the size that they had."""

    records: Records
    access: Access
    number: Lanes
    unit: int
    reads: bool

    def part(self, which: Lanes) -> _Copy:
        """Return some of the units, in their present size."""
        times = self.unit // self.records.unit
        lanes, threads, at = (values[which] for values in self.access[:3])
        at = (at[:, None] * times + np.arange(times)).reshape(-1)
        access = self.access._replace(
            lanes=np.repeat(lanes, times), threads=np.repeat(threads, times), at=at
        )
        number = np.repeat(self.number[which], times)
        return self._replace(access=access, number=number, unit=self.records.unit)
