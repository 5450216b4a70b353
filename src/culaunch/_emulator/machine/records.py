"""The last accesses to each unit of a memory, as far as a later access may race with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.memory.scratch import Scratch
    from culaunch._emulator.types import Lanes


class Access(NamedTuple):
    """A lane, its thread and an offset for every unit of an access.

    `words` are the units of the memory, and `new` has the values that a write brings.
    """

    lanes: Lanes
    threads: Lanes
    at: Lanes
    verb: str
    now: int
    words: Lanes
    new: Lanes | None = None

    @property
    def changes(self) -> Lanes:
        """For each unit, whether it is not a write of the value that is already there."""
        if self.new is None:
            return np.ones(self.at.shape, bool)
        return np.asarray(self.new != self.words[self.at])


class Found(NamedTuple):
    """Units of an access, by index, and the threads that it races with there."""

    units: Lanes
    threads: Lanes
    times: Lanes

    def at(self, which: Lanes) -> Found:
        """Return some of the units."""
        return Found(self.units[which], self.threads[which], self.times[which])

    def among(self, flags: Lanes) -> Found:
        """Return the units of the access whose flag is set."""
        return self.at(np.flatnonzero(flags[self.units]))


class Slot:
    """For each unit a thread and the time of its access; no thread is 0, and thread n is n + 1."""

    def __init__(self, length: int) -> None:
        # The system provides memory for zeros when they are first written. So an array costs as
        # much as a kernel accesses of it.
        self.thread: Lanes = np.zeros(length, np.int32)
        self.time: Lanes = np.zeros(length, np.int32)
        self.used = False

    def put(self, access: Access, index: Lanes | slice) -> None:
        """Record some units of an access; of several lanes at one unit, the last stays."""
        self.used = True
        at = access.at[index]
        self.thread[at] = access.threads[index] + 1
        self.time[at] = access.now

    def clear(self, at: Lanes) -> None:
        """Forget units."""
        if self.used:
            self.thread[at] = 0

    def refine(self, times: int) -> None:
        """Make several units of each."""
        if self.used:
            self.thread, self.time = np.repeat(self.thread, times), np.repeat(self.time, times)
        else:
            length = self.thread.shape[0] * times
            self.thread, self.time = np.zeros(length, np.int32), np.zeros(length, np.int32)


class Ends:
    """The first and the last of several accesses since the last write."""

    def __init__(self, length: int) -> None:
        self.first, self.last = Slot(length), Slot(length)

    def put(self, access: Access, known: Lanes) -> None:
        """Record an access; `known` is the time until which each lane knows those of its block."""
        # A first access that the whole block knows can no longer race with it.
        at, first = access.at, self.first
        free = np.flatnonzero((first.thread[at] == 0) | (first.time[at] <= known))
        # Of several lanes the first one stays here, and the last one below.
        first.put(access, free[::-1])
        self.last.put(access, slice(None))


class Records:
    """The accesses to a memory.

    Each unit has its last writer, and the first and the last of the readers since then, and of the
    updaters by strong accesses. A write clears the readers and the updaters: a thread that accesses
    after the write also comes after them, or has raced with the write.

    Parameters
    ----------
    length : int
        The bytes of the memory.
    unit : int
        The size of a unit in bytes. A smaller access makes the units smaller, for good.
    space : str
        ``"shared"`` or ``"global"``, for messages.
    address : callable
        Returns the address, for messages, of an offset in bytes.
    noun : str, optional
        Precedes an address in messages.
    fresh : bool
        Whether the contents are undefined at first. If not, a write of the value that is already
        there changes nothing.

    Attributes
    ----------
    storer : Slot
        The last thread that wrote, even if it was the value that was already there. It matters for
        writes of other values, not for reads.
    released : numpy.ndarray
        When a strong write last published something here.
    copying : Slot
        The threads whose asynchronous copies write here, until they wait for them.
    copied_from : Slot
        The threads whose bulk copies read here, until they wait for them.
    counted : Slot
        Bulk copies that an mbarrier counts, until another write.
    completed : numpy.ndarray
        When the bytes of a copy last arrived at the mbarrier here.
    """

    def __init__(
        self,
        length: int,
        unit: int,
        space: str,
        address: Callable[[int], int],
        *,
        fresh: bool,
        noun: str = "",
    ) -> None:
        self.unit = unit
        self.space = space
        self.noun = noun or f"{space} address"
        self.address = address
        self.fresh = fresh
        count = -(-length // unit)
        self.writer, self.storer = Slot(count), Slot(count)
        self.readers, self.updaters = Ends(count), Ends(count)
        self.copying, self.copied_from, self.counted = Slot(count), Slot(count), Slot(count)
        self.released: Lanes = np.zeros(count, np.int32)
        self.completed: Lanes = np.zeros(count, np.int32)
        # Most kernels have no asynchronous copies, and then need not look for them.
        self.has_copies = False

    def refine(self, unit: int) -> None:
        """Split the units into units of `unit` bytes."""
        times = self.unit // unit
        self.unit = unit
        for slot in (
            self.writer, self.storer, *self._ends(), self.copying, self.copied_from, self.counted
        ):  # fmt: skip
            slot.refine(times)
        self.released = np.repeat(self.released, times)
        self.completed = np.repeat(self.completed, times)

    def units(self, at: Lanes, size: int) -> Lanes:
        """Return the units of accesses of `size` bytes at offsets, a row for each access."""
        units: Lanes = (at // self.unit)[..., None] + np.arange(max(size // self.unit, 1))
        return units

    def wrote(self, access: Access, index: Lanes | slice) -> None:
        """Record a plain write, after which earlier accesses do not matter."""
        at = access.at[index]
        self.writer.put(access, index)
        for slot in self._ends():
            slot.clear(at)
        if self.has_copies:
            self.counted.clear(at)

    def unwrite(self, at: Lanes) -> None:
        """Forget who wrote units: they have another record."""
        self.writer.clear(at)
        self.storer.clear(at)

    def _ends(self) -> tuple[Slot, ...]:
        return self.readers.first, self.readers.last, self.updaters.first, self.updaters.last


def shared_records(shared: Scratch) -> Records:
    """Return records of the shared memory of a chunk's blocks."""
    return Records(shared.array.shape[0], 4, "shared", lambda at: at % shared.stride, fresh=True)
