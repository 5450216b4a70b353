"""Accesses of two threads to the same memory that nothing orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine.async_copies import AsyncCopies
from culaunch._emulator.machine.chunk import WARPGROUP
from culaunch._emulator.machine.conflicts import Conflicts
from culaunch._emulator.machine.ordering import Ordering
from culaunch._emulator.machine.proxy_fences import ProxyFences
from culaunch._emulator.machine.race_reports import RaceReports
from culaunch._emulator.machine.records import Access, Found
from culaunch._emulator.memory.how import BLOCK, PLAIN

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.history import History
    from culaunch._emulator.machine.records import Records
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.memory.bytes import Piece
    from culaunch._emulator.memory.how import How
    from culaunch._emulator.types import Lanes


class Races:
    """Checks the accesses of a chunk to shared and global memory.

    Two accesses race if different threads make them, at least one is a write, and nothing orders
    them (`Ordering`). An access is plain or strong. Two strong accesses do not race, if the scope
    of each includes the other thread.

    Attributes
    ----------
    copies, bulk : AsyncCopies
        The copies of cp.async and cp.async.bulk for which no thread has waited.
    products : AsyncCopies
        The reads of products of matrices for which no thread of the warpgroup has waited.
    proxy : ProxyFences
        The fences between threads and the asynchronous proxy.
    """

    def __init__(self, chunk: Chunk, history: History) -> None:
        self.history = history
        self.order = Ordering(chunk, history)
        lanes = np.arange(chunk.size)
        self.copies, self.bulk = AsyncCopies(lanes), AsyncCopies(lanes)
        in_block = lanes % chunk.width
        self.products = AsyncCopies(lanes - in_block + in_block // WARPGROUP)
        self.reports = RaceReports(chunk, history)
        self.conflicts = Conflicts(chunk, self.order)
        self._first = chunk.first_block * chunk.width
        self.proxy = ProxyFences(self.order, chunk.size, self._first)

    def read(self, group: Group, piece: Piece, records: Records, size: int, how: How) -> None:
        """Record a read, and the accesses that it races with.

        Compilers move loads before their conditions: it is a race where the value is used.
        """
        access = self._access(group, piece, records, size, "reads", how)
        self._acquire(access, records, how)
        note = self.reports.note
        found = self.conflicts.unordered(records, records.writer, access, how)
        note(records, access, found, "wrote", size)
        if how.kind in ("bulk", "counted") and not found.units.shape[0]:
            self._require_fenced(access, records)
        if how.strong:
            note(records, access, self.conflicts.narrow(records, access, how), "updated", size)
            return
        note(records, access, self.conflicts.updaters(records, access, how), "updated", size)
        # A bulk copy reads later, too. One that an mbarrier counts has read its source when the
        # bytes arrive.
        if how.kind == "bulk":
            self.bulk.start(records, access, reads=True)
        else:
            records.readers.put(access, self.order.block_time(access.lanes))

    def write(
        self, group: Group, piece: Piece, records: Records, size: int, values: Lanes, how: How
    ) -> None:
        """Check a write; `values` has its bytes in each lane, and memory has the old ones yet."""
        access = self._access(group, piece, records, size, "writes", how, values)
        # A thread that writes the value that is already there, or the same value as others, harms
        # nobody.
        new, change = np.asarray(access.new), access.changes
        report = self.reports.report
        for writer in (records.writer, records.storer):
            report(
                records,
                access,
                self.conflicts.unordered(records, writer, access, how, change),
                "wrote",
            )
        for reader in (records.readers.first, records.readers.last):
            report(
                records,
                access,
                self.conflicts.readers(records, reader, access, how, change),
                "read",
            )
        if how.strong:
            found = self.conflicts.narrow(records, access, how).among(change)
            report(records, access, found, "updated")
            records.updaters.put(access, self.order.block_time(access.lanes))
            self._release(access, records, how)
            return
        report(records, access, self.conflicts.updaters(records, access, how, change), "updated")
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
        report(
            records, access, self.conflicts.unordered(records, records.writer, access, how), "wrote"
        )
        for reader in (records.readers.first, records.readers.last):
            report(records, access, self.conflicts.readers(records, reader, access, how), "read")
        report(records, access, self.conflicts.narrow(records, access, how), "updated")
        records.updaters.put(access, self.order.block_time(access.lanes))
        # Of several blocks that update a word together, the last one is recorded now.
        if how.scope == BLOCK:
            report(records, access, self.conflicts.narrow(records, access, how), "updated")

    def read_factor(
        self, group: Group, piece: Piece, records: Records, size: int, *, grouped: bool
    ) -> None:
        """Report a factor of a product that a copy writes, or a thread wrote without a fence.

        Later writes are not compared with this read, unless it is `grouped`: until a wait for it.
        """
        access = self._access(group, piece, records, size, "reads", PLAIN)
        self._require_fenced(access, records)
        if grouped:
            self.products.start(records, access, reads=True)

    def wait(
        self, copies: AsyncCopies, lanes: Lanes, newest: int | None, *, only_reads: bool = False
    ) -> None:
        """End `copies` or `bulk` of this class: they are reads and writes of now."""
        now = self.history.tick()
        for records, access, reads in copies.finish(lanes, newest, only_reads=only_reads):
            ended = access._replace(now=now)
            if reads:
                records.readers.put(ended, self.order.block_time(ended.lanes))
            else:
                records.wrote(ended, slice(None))

    def wait_products(self, lanes: Lanes, newest: int) -> None:
        """End the reads of products. One thread may tell others that its warpgroup has read."""
        for _ in self.products.finish(lanes, newest):
            pass

    def wait_mbarrier(self, group: Group, pieces: list[Piece], passed: Lanes, scope: int) -> None:
        """Record that lanes whose flag is set in `passed` have seen the end of a phase."""
        passed = np.broadcast_to(passed, (group.n,))
        for piece in pieces:
            lanes, flags = group.lanes, passed
            if piece.lanes is not None:
                lanes, flags = lanes[piece.lanes], flags[piece.lanes]
            if piece.shadow is None or piece.shadow.records is None or not flags.any():
                continue
            records = piece.shadow.records
            units = records.units(np.broadcast_to(piece.at, lanes.shape)[flags], 8)
            lanes = lanes[flags]
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

    def _require_fenced(self, access: Access, records: Records) -> None:
        if records.space == "shared" and records.storer.used:
            found = self.proxy.unfenced(records, access)
            access = access._replace(verb="reads through the asynchronous proxy")
            self.reports.report(records, access, found, "wrote", missing="fence.proxy.async")

    def _access(
        self,
        group: Group,
        piece: Piece,
        records: Records,
        size: int,
        verb: str,
        how: How,
        values: Lanes | None = None,
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
        words = piece.data.by_size[records.unit]
        new = None if values is None else values.view(f"u{records.unit}").reshape(-1)
        access = Access(lanes, lanes + self._first, at.reshape(-1), verb, now, words, new)
        if records.has_copies:
            self.reports.check_copies(records, access, self.order.knows_copies(lanes))
        return access

    def _acquire(self, access: Access, records: Records, how: How) -> None:
        if how.strong:
            released = records.released[access.at]
            self.order.acquire(access.lanes, released, how.scope, acquires=how.acquires)

    def _release(self, access: Access, records: Records, how: How) -> None:
        if self.order.release(access.lanes, how.scope, releases=how.releases):
            records.released[access.at] = access.now
