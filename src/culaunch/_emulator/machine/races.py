"""Accesses of two threads to the same shared memory that nothing orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.machine.accesses import MANY, NOBODY, Access, Accesses
from culaunch._emulator.machine.async_copies import AsyncCopies
from culaunch._emulator.machine.warp_order import WarpOrder
from culaunch._emulator.memory.undefined_bytes import Read

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.memory.bytes import Piece
    from culaunch._emulator.types import Lanes

__all__ = ["Races"]

# Added to a lane, or to one of these words, to make it positive.
_SHIFTED = 2
_RACE = "race: a thread {} shared address {}, which {} {} with no {} in between"


class Races:
    """The accesses to each unit of shared memory since the last barrier of its block.

    Two accesses race if different threads make them, at least one is a write, and nothing orders
    them. Barriers order all threads of a block, and `WarpOrder` has the order of the lanes in a
    warp. An access is plain or strong. Strong accesses are atomic operations, and volatile,
    relaxed, acquire and release ones. Two strong accesses do not race.

    Each unit records its last writer, its readers since then, and its updaters by strong accesses
    since then. A write clears the readers and updaters: a thread that accesses after the write also
    comes after them, or has raced with the write.

    Attributes
    ----------
    unit : int
        The size of a unit in bytes: the smallest access so far, at most four.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.unit = 4
        length = chunk.shared.array.shape[0] // self.unit
        self.order = WarpOrder(chunk)
        self.copies = AsyncCopies(chunk)
        self._writer: Lanes = np.full(length, NOBODY, np.int32)
        self._written: Lanes = np.zeros(length, np.int32)
        self._readers = Accesses(length, self.order)
        self._updaters = Accesses(length, self.order)

    def read(self, group: Group, piece: Piece, size: int, *, strong: bool) -> None:
        """Record a read, and the accesses that it races with.

        Compilers move loads before their conditions: it is a race where the value is used.
        """
        access = self._access(group, piece, size, "reads")
        self._note(access, self._unordered_writer(access), "wrote", size)
        # A strong read races with no update, and no update races with it.
        if not strong:
            self._note(access, self._updaters.against(access), "updated", size)
            self._readers.add(access)

    def write(self, group: Group, piece: Piece, size: int, values: Lanes, *, how: str) -> None:
        """Check a write; `values` has its bytes in each lane, and memory has the old ones yet."""
        access = self._access(group, piece, size, "writes")
        # A thread that writes the value that is already there, or the same value as others, harms
        # nobody. Count in the current unit size: `_access` above may have refined it.
        new = values.view(f"u{self.unit}").reshape(-1)
        change = new != piece.data.by_size[self.unit][access.at]
        writer = self._unordered_writer(access)
        self._report(access, np.where(change, writer, NOBODY), "wrote")
        # A value that changes during a read is a race, even if the reader never uses it. Unlike a
        # read, a write cannot be postponed to its use.
        self._report(access, self._readers.against(access), "read")
        if how == "strong":
            self._updaters.add(access)
            return
        self._report(access, self._updaters.against(access), "updated")
        # If several lanes write one unit at once, one is the last. The others raced with it, unless
        # they wrote the same. NumPy keeps the last of several elements assigned to one place, as
        # `store` does, so the named lane is the one whose value stays.
        self._wrote(access)
        lost = np.flatnonzero(self._writer[access.at] != access.lanes)
        if lost.shape[0]:
            final = np.zeros(self._writer.shape, new.dtype)
            final[access.at] = new
            others = np.where(final[access.at] != new, self._writer[access.at], NOBODY)
            self._report(access, others, "wrote")
        # Until a thread waits for it, a copy is a write without an owner.
        if how == "async":
            self._writer[access.at] = NOBODY
            self.copies.start(access.lanes, access.at)

    def update(self, group: Group, piece: Piece, size: int) -> None:
        """Check an atomic operation."""
        access = self._access(group, piece, size, "updates")
        self._report(access, self._unordered_writer(access), "wrote")
        self._report(access, self._readers.against(access), "read")
        self._updaters.add(access)

    def barrier(self, done: Lanes | None) -> None:
        """Forget the accesses of the blocks `done`, or of all blocks, before their barrier."""
        # The rows are the blocks of the chunk, which have separate barriers.
        stride = self.chunk.shared.stride // self.unit
        which = slice(None) if done is None else done
        # Times and masks stay, and are ignored if no thread is recorded.
        self._writer.reshape(-1, stride)[which] = NOBODY
        self._readers.warp.reshape(-1, stride)[which] = NOBODY
        self._updaters.warp.reshape(-1, stride)[which] = NOBODY

    def wait(self, lanes: Lanes, newest: int | None) -> None:
        """End the copies of `lanes` but the `newest` groups: they are writes of now."""
        for owners, at in self.copies.finish(lanes, newest):
            self._wrote(Access(owners, at, "writes"))

    def _access(self, group: Group, piece: Piece, size: int, verb: str) -> Access:
        lanes = group.lanes if piece.lanes is None else group.lanes[piece.lanes]
        # Most kernels never access less than four bytes, and a unit for each byte would cost four
        # times the memory and the work. The first narrower access makes all units smaller,
        # permanently.
        if size < self.unit:
            self._refine(size)
        count = size // self.unit
        at = np.broadcast_to(piece.at // self.unit, lanes.shape)
        # An access of several units is that many accesses.
        if count > 1:
            at = (at[:, None] + np.arange(count)).reshape(-1)
            lanes = np.repeat(lanes, count)
        access = Access(lanes, at, verb)
        # Even the thread that started the copy may not look before it has waited (PTX ISA,
        # "cp.async").
        owner = self.copies.owner[at]
        if owner.any():
            index = int(np.flatnonzero(owner)[0])
            raise Fault(
                LAUNCH_FAILED,
                f"race: a thread {verb} shared address {self._offset(access, index):#x} without "
                f"waiting for a cp.async of thread {self._thread(int(owner[index]) - 1)}, which "
                "copies to it",
                kind="race",
                lane=int(access.lanes[index]),
            )
        return access

    def _refine(self, unit: int) -> None:
        """Split or merge the existing units into units of `unit` bytes."""
        times = self.unit // unit
        self.unit = unit
        self._writer = np.repeat(self._writer, times)
        self._written = np.repeat(self._written, times)
        self._readers.refine(times)
        self._updaters.refine(times)
        self.copies.refine(times)

    def _wrote(self, access: Access) -> None:
        self._writer[access.at] = access.lanes
        self._written[access.at] = self.order.now(access.lanes)
        self._readers.warp[access.at] = NOBODY
        self._updaters.warp[access.at] = NOBODY

    def _unordered_writer(self, access: Access) -> Lanes:
        """Return for each unit the lane that wrote it, if the access does not come after that."""
        writer = self._writer[access.at]
        # Only where another lane wrote is there anything to ask: mostly nowhere.
        index = np.flatnonzero((writer >= 0) & (writer != access.lanes))
        if index.shape[0]:
            lanes, others = access.lanes[index], writer[index]
            known = self.order.ordered(lanes, others, self._written[access.at[index]])
            writer[index[known]] = NOBODY
        return writer

    def _note(self, access: Access, others: Lanes, did: str, size: int) -> None:
        """Make the values undefined that were read in a race with a lane of `others`."""
        index = np.flatnonzero((others != NOBODY) & (others != access.lanes))
        if not index.shape[0]:
            return
        # Report one unit for each lane: the value that it read is undefined as a whole. `index`
        # follows the lanes, so the first unit of each lane has the lowest address.
        lanes, first = np.unique(access.lanes[index], return_index=True)
        index = index[first]
        address = access.at[index] * self.unit % self.chunk.shared.stride
        self.chunk.undefined_reads.append(
            Read(
                lanes,
                np.full((lanes.shape[0], size), 255, np.uint8),
                np.full(lanes.shape, -1, np.int64),
                _RACE.format(access.verb, "{:#x}", "{}", did, "{}"),
                # Address and thread in one number, because an origin holds only one.
                address | others[index].astype(np.int64) + _SHIFTED << 32,
                racing=self._tell,
            )
        )

    def _tell(self, text: str, detail: int, lane: int) -> str:
        other = (detail >> 32) - _SHIFTED
        return text.format(detail & 0xFFFFFFFF, self._who(other), _missing(lane, other))

    def _who(self, other: int) -> str:
        return "several threads" if other == MANY else f"thread {self._thread(other)}"

    def _report(self, access: Access, others: Lanes, did: str) -> None:
        """Raise the fault of the first access that races with a lane of `others`."""
        conflict = (others != NOBODY) & (others != access.lanes)
        if not conflict.any():
            return
        index = int(np.flatnonzero(conflict)[0])
        other, lane = int(others[index]), int(access.lanes[index])
        offset, missing = self._offset(access, index), _missing(lane, other)
        reason = _RACE.format(access.verb, f"{offset:#x}", self._who(other), did, missing)
        raise Fault(LAUNCH_FAILED, reason, kind="race", lane=lane)

    def _offset(self, access: Access, index: int) -> int:
        return int(access.at[index]) * self.unit % self.chunk.shared.stride

    def _thread(self, lane: int) -> tuple[int, int, int]:
        return self.chunk.place(lane)[1]


def _missing(lane: int, other: int) -> str:
    same_warp = other >= 0 and other // 32 == lane // 32
    return "barrier or __syncwarp" if same_warp else "barrier"
