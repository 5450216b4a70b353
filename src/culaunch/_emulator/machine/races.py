"""Accesses of two threads to the same memory that nothing orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine.async_copies import AsyncCopies
from culaunch._emulator.machine.ordering import Ordering
from culaunch._emulator.machine.race_reports import RaceReports
from culaunch._emulator.machine.records import Access, Found
from culaunch._emulator.memory.how import BLOCK, PLAIN

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.history import History
    from culaunch._emulator.machine.records import Records, Slot
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.memory.bytes import Piece
    from culaunch._emulator.memory.how import How
    from culaunch._emulator.types import Lanes

__all__ = ["Races"]


class Races:
    """Checks the accesses of a chunk to shared and global memory.

    Two accesses race if different threads make them, at least one is a write, and nothing orders
    them (`Ordering`). An access is plain or strong. Two strong accesses do not race, if the scope
    of each includes the other thread.

    Attributes
    ----------
    copies, bulk : AsyncCopies
        The copies of cp.async and cp.async.bulk for which no thread has waited.
    """

    def __init__(self, chunk: Chunk, history: History) -> None:
        self.history = history
        self.order = Ordering(chunk, history)
        self.copies = AsyncCopies(chunk.size)
        self.bulk = AsyncCopies(chunk.size)
        self.reports = RaceReports(chunk, history)
        self._first = chunk.first_block * chunk.width
        self._width = chunk.width
        self._clusters = chunk.launch.cluster.size

    def read(self, group: Group, piece: Piece, records: Records, size: int, how: How) -> None:
        """Record a read, and the accesses that it races with.

        Compilers move loads before their conditions: it is a race where the value is used.
        """
        access = self._access(group, piece, records, size, "reads", how)
        self._acquire(access, records, how)
        note = self.reports.note
        note(records, access, self._unordered(records, records.writer, access, how), "wrote", size)
        if how.strong:
            note(records, access, self._too_narrow(records, access, how), "updated", size)
            return
        note(records, access, self._unordered_updater(records, access, how), "updated", size)
        # A bulk copy reads later, too.
        if how.kind == "bulk":
            self.bulk.start(records, access, reads=True)
        else:
            records.readers.put(access, self.order.block_time(access.lanes))

    def write(
        self, group: Group, piece: Piece, records: Records, size: int, values: Lanes, how: How
    ) -> None:
        """Check a write; `values` has its bytes in each lane, and memory has the old ones yet."""
        access = self._access(group, piece, records, size, "writes", how)
        # A thread that writes the value that is already there, or the same value as others, harms
        # nobody. Count in the current unit size: `_access` above may have refined it.
        new = values.view(f"u{min(records.unit, size)}").reshape(-1)
        change = new != piece.data.by_size[new.itemsize][access.at * records.unit // new.itemsize]
        report = self.reports.report
        for writer in (records.writer, records.storer):
            report(records, access, self._unordered(records, writer, access, how, change), "wrote")
        for reader in (records.readers.first, records.readers.last):
            report(records, access, self._unordered(records, reader, access, how, change), "read")
        if how.strong:
            found = self._too_narrow(records, access, how).among(change)
            report(records, access, found, "updated")
            records.updaters.put(access, self.order.block_time(access.lanes))
            self._release(access, records, how)
            return
        report(records, access, self._unordered_updater(records, access, how, change), "updated")
        # If several lanes write one unit at once, one is the last. The others raced with it, unless
        # they wrote the same. NumPy keeps the last of several elements assigned to one place, as
        # `store` does, so the named lane is the one whose value stays.
        counts = change | (records.writer.thread[access.at] == 0) if records.fresh else change
        records.wrote(access, np.flatnonzero(counts))
        records.storer.put(access, slice(None))
        last = records.storer.thread[access.at]
        lost = np.flatnonzero(last != access.threads + 1)
        if lost.shape[0]:
            final = np.zeros(records.storer.thread.shape, new.dtype)
            final[access.at] = new
            lost = lost[final[access.at[lost]] != new[lost]]
            others = Found(lost, last[lost] - 1, np.full(lost.shape, access.now, np.int32))
            report(records, access, others, "wrote")
        # Until a thread waits for it, a copy is a write without an owner.
        if how.kind in ("async", "bulk"):
            records.unwrite(access.at)
            (self.copies if how.kind == "async" else self.bulk).start(records, access)
        elif how.kind == "counted":
            records.unwrite(access.at)
            records.has_copies = True
            records.counted.put(access, slice(None))

    def update(self, group: Group, piece: Piece, records: Records, size: int, how: How) -> None:
        """Check an atomic operation."""
        access = self._access(group, piece, records, size, "updates", how)
        # Of lanes that update one word together, a later one sees what an earlier one released.
        self._release(access, records, how)
        self._acquire(access, records, how)
        report = self.reports.report
        report(records, access, self._unordered(records, records.writer, access, how), "wrote")
        for reader in (records.readers.first, records.readers.last):
            report(records, access, self._unordered(records, reader, access, how), "read")
        report(records, access, self._too_narrow(records, access, how), "updated")
        records.updaters.put(access, self.order.block_time(access.lanes))
        # Of several blocks that update a word together, the last one is recorded now.
        if how.scope == BLOCK:
            report(records, access, self._too_narrow(records, access, how), "updated")

    def wait(self, lanes: Lanes, newest: int | None) -> None:
        """End copies of cp.async: they are writes of now."""
        self._finish(self.copies, lanes, newest)

    def wait_bulk(self, lanes: Lanes, newest: int, *, only_reads: bool) -> None:
        """End bulk copies: they are reads and writes of now."""
        self._finish(self.bulk, lanes, newest, only_reads=only_reads)

    def wait_mbarrier(self, group: Group, pieces: list[Piece], passed: Lanes, scope: int) -> None:
        """Record that lanes whose flag is set in `passed` have seen the end of a phase."""
        for piece in pieces:
            which = passed if piece.lanes is None else passed[piece.lanes]
            index = np.flatnonzero(np.broadcast_to(which, (self._count(group, piece),)))
            if piece.shadow is None or piece.shadow.records is None or not index.shape[0]:
                continue
            records = piece.shadow.records
            at = np.broadcast_to(piece.at, which.shape if which.shape[0] > 1 else (group.n,))
            units = records.units(at[index], 8)
            lanes = group.lanes if piece.lanes is None else group.lanes[piece.lanes]
            lanes = lanes[index]
            completed = records.completed[units].max(axis=1)
            if completed.any():
                self.order.wait_for_copies(lanes, completed)
            released = records.released[units].max(axis=1)
            self.order.acquire(lanes, released, scope, acquires=True)

    def complete(self, pieces: list[Piece]) -> None:
        """Record that the bytes of copies have arrived at mbarriers."""
        now = self.history.tick()
        for piece in pieces:
            if piece.shadow is not None and piece.shadow.records is not None:
                records = piece.shadow.records
                records.completed[records.units(piece.at, 8)] = now

    def _finish(
        self, copies: AsyncCopies, lanes: Lanes, newest: int | None, *, only_reads: bool = False
    ) -> None:
        now = self.history.tick()
        for records, access, reads in copies.finish(lanes, newest, only_reads=only_reads):
            ended = access._replace(now=now)
            if reads:
                records.readers.put(ended, self.order.block_time(ended.lanes))
            else:
                records.wrote(ended, slice(None))

    def _access(
        self, group: Group, piece: Piece, records: Records, size: int, verb: str, how: How
    ) -> Access:
        lanes = group.lanes if piece.lanes is None else group.lanes[piece.lanes]
        # Most kernels never access less than four bytes, and a unit for each byte would cost four
        # times the memory and the work. The first narrower access makes all units smaller,
        # permanently.
        if size < records.unit:
            records.refine(size)
        at = np.broadcast_to(records.units(piece.at, size), (lanes.shape[0], size // records.unit))
        # An access of several units is that many accesses.
        lanes = np.repeat(lanes, at.shape[1]) if at.shape[1] > 1 else lanes
        now = self.history.tick(how.scope)
        access = Access(lanes, lanes + self._first, at.reshape(-1), verb, now)
        if records.has_copies:
            self.reports.check_copies(records, access, self.order.knows_copies(lanes))
        return access

    def _unordered(
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

    def _unordered_updater(
        self, records: Records, access: Access, how: How, change: Lanes | None = None
    ) -> Found:
        # A thread that was the last to update a word has seen all updates before its own.
        last = records.updaters.last
        if not last.used:
            return _NOTHING
        others = last.thread[access.at] != access.threads + 1
        others = others if change is None else others & change
        found = self._unordered(records, records.updaters.first, access, how, others)
        return (
            found if found.units.shape[0] else self._unordered(records, last, access, how, others)
        )

    def _too_narrow(self, records: Records, access: Access, how: How) -> Found:
        """Return the strong accesses of other blocks that one of the scopes does not include."""
        if records.space != "global":
            return _NOTHING
        found = self._unordered(records, records.updaters.last, access, PLAIN)
        foreign = found.threads // self._width != access.threads[found.units] // self._width
        narrow = (self.history.scopes(found.times) == BLOCK) | (how.scope == BLOCK)
        return found.at(np.flatnonzero(foreign & narrow))

    def _acquire(self, access: Access, records: Records, how: How) -> None:
        if how.strong:
            released = records.released[access.at]
            self.order.acquire(access.lanes, released, how.scope, acquires=how.acquires)

    def _release(self, access: Access, records: Records, how: How) -> None:
        if self.order.release(access.lanes, how.scope, releases=how.releases):
            records.released[access.at] = access.now

    @staticmethod
    def _count(group: Group, piece: Piece) -> int:
        return group.n if piece.lanes is None else int(piece.lanes.shape[0])


_NONE = np.zeros(0, np.int64)
_NOTHING = Found(_NONE, _NONE, _NONE)
