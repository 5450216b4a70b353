"""The reports on races: both accesses, the value and the allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.machine.chunk import thread_place
from culaunch._emulator.memory.how import BLOCK
from culaunch._emulator.memory.undefined_bytes import Read

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.history import History
    from culaunch._emulator.machine.records import Access, Found, Records, Slot
    from culaunch._emulator.report import Related
    from culaunch._emulator.types import Lanes

_INDEX_BITS = 32


class RaceReports:
    """Reports the races of a chunk: those of writes at once, of reads where the value is used."""

    def __init__(self, chunk: Chunk, history: History) -> None:
        self.chunk = chunk
        self.history = history
        self._width = chunk.width
        self._first = chunk.first_block * chunk.width
        # The reads that raced. The detail of an undefined value has a number in this list, and the
        # number of a unit.
        self._reads: list[_Race] = []

    def report(
        self, records: Records, access: Access, found: Found, did: str, missing: str = ""
    ) -> None:
        """Raise the fault of the first access that races; `missing` would have ordered it."""
        if found.units.shape[0]:
            values = _values(access, found)
            race = _Race(records, records.unit, access, found, did, values, missing)
            reason, related, notes = self._describe(race, 0)
            raise Fault(
                LAUNCH_FAILED,
                reason,
                kind="race",
                lane=int(access.lanes[found.units[0]]),
                related=related,
                notes=notes,
            )

    def note(self, records: Records, access: Access, found: Found, did: str, size: int) -> None:
        """Make the values undefined that were read in a race."""
        if not found.units.shape[0]:
            return
        # Report one unit for each lane: the value that it read is undefined as a whole. `index`
        # follows the lanes, so the first unit of each lane has the lowest address.
        lanes, first = np.unique(access.lanes[found.units], return_index=True)
        number = len(self._reads)
        found = found.at(first)
        race = _Race(records, records.unit, access, found, did, _values(access, found))
        self._reads.append(race)
        self.chunk.undefined_reads.append(
            Read(
                lanes,
                np.full((lanes.shape[0], size), 255, np.uint8),
                np.full(lanes.shape, -1, np.int64),
                "a race",
                np.arange(lanes.shape[0]) + (number << _INDEX_BITS),
                racing=self._tell,
            )
        )

    def check_copies(self, records: Records, access: Access, known: Lanes) -> None:
        """Report an access to bytes that a copy writes, or a write to those that it reads."""
        # Even the thread that started the copy may not look before it has waited (PTX ISA,
        # "cp.async").
        counted = records.counted
        late = (counted.thread[access.at] != 0) & (counted.time[access.at] > known)
        self._refuse_copy(records, access, counted, late, "copies to it")
        copying = records.copying.thread[access.at] != 0
        self._refuse_copy(records, access, records.copying, copying, "copies to it")
        if access.verb != "reads":
            source = records.copied_from.thread[access.at] != 0
            self._refuse_copy(records, access, records.copied_from, source, "copies from it")

    def _refuse_copy(
        self, records: Records, access: Access, slot: Slot, wrong: Lanes, does: str
    ) -> None:
        if not wrong.any():
            return
        # Triton stores some tiles twice, with the same values.
        index = np.flatnonzero(wrong & access.changes)
        if not index.shape[0]:
            return
        at = int(access.at[index[0]])
        thread, time = int(slot.thread[at]) - 1, int(slot.time[at])
        name = self.history.name_of_started(time)
        is_product = name == "wgmma"
        address = records.address(at * records.unit)
        raise Fault(
            LAUNCH_FAILED,
            f"race: a thread {access.verb} {records.noun} "
            f"{address:#x} without waiting for a {name} of "
            f"{self._who(thread, int(access.threads[index[0]]))}, which "
            f"{'reads it' if is_product else does}",
            kind="race",
            lane=int(access.lanes[index[0]]),
            related=[
                self.history.describe("the product" if is_product else "the copy", thread, time)
            ],
            notes=self._notes(records, access, int(index[0]), int(access.words[at])),
        )

    def _tell(self, detail: int) -> tuple[str, list[Related], list[str]]:
        race = self._reads[detail >> _INDEX_BITS]
        return self._describe(race, detail & ((1 << _INDEX_BITS) - 1))

    def _describe(self, race: _Race, which: int) -> tuple[str, list[Related], list[str]]:
        """Return the message of a race, the other access, and a note on the allocation."""
        records, found = race.records, race.found
        index = int(found.units[which])
        thread, time = int(found.threads[which]), int(found.times[which])
        own = int(race.access.threads[index])
        address = records.address(int(race.access.at[index]) * race.unit)
        # The report of two strong accesses names their scopes, which are the reason.
        missing = race.missing or _missing(own, thread, self._width)
        if race.access.verb != "reads" and race.did == "updated":
            scopes = self.history.scopes(np.array([race.access.now, time]))
            if BLOCK in scopes and own // self._width != thread // self._width:
                missing = "scope that includes both threads (one of them has .cta)"
        related = [self.history.describe("the other access", thread, time)]
        notes = self._notes(records, race.access, index, int(race.values[which]))
        reason = (
            f"race: a thread {race.access.verb} {records.noun} {address:#x}, which "
            f"{self._who(thread, own)} {race.did} with no {missing} in between"
        )
        return reason, related, notes

    def _notes(self, records: Records, access: Access, index: int, old: int) -> list[str]:
        """Return the notes on a unit of an access: its old and new value, and its allocation."""
        value = f"{old:#x}"
        if access.new is not None:
            value = f"{int(access.new[index]):#x}, written over {value}"
        notes = [f"the value: {value}"]
        address = records.address(int(access.at[index]) * records.unit)
        allocation = self.chunk.globals.allocation_of(address)
        if records.space == "global" and allocation:
            notes.append(f"the address: {allocation}")
        return notes

    def _who(self, thread: int, own: int) -> str:
        block, index = thread_place(self.chunk.launch, thread, self._width)
        same = thread // self._width == own // self._width
        return f"thread {index}" if same else f"thread {index} of block {block}"


class _Race(NamedTuple):
    """Races of one access with others, which did something to the same units."""

    records: Records
    unit: int
    access: Access
    found: Found
    did: str
    values: Lanes
    missing: str = ""


def _values(access: Access, found: Found) -> Lanes:
    """Return the present values of the units that race, which may change before a report."""
    values: Lanes = access.words[access.at[found.units]]
    return values


def _missing(own: int, other: int, width: int) -> str:
    if own // width != other // width:
        return "release and acquire that include both blocks"
    return "barrier or __syncwarp" if own // 32 == other // 32 else "barrier"
