"""Global memory: the ranges of host memory that a kernel may touch."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.fault import ILLEGAL_ADDRESS, MISALIGNED_ADDRESS, Fault
from culaunch._emulator.memory.bytes import Bytes, Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from culaunch._emulator.fault import Explanation
    from culaunch._emulator.memory.threads import Threads
    from culaunch._emulator.types import Lanes

# No allocation is here. A member or an element behind a null pointer may have a small address.
_NULL_PAGE = 4096


class GlobalMemory:
    """Sorted, disjoint ranges; an access must lie within one of them.

    Parameters
    ----------
    ranges : iterable of (int, int)
        Address and size in bytes of each range. Overlapping ranges are joined.
    variables : sequence of tuple of list of int, optional
        The starts and the ends of each module's variables: ascending, and disjoint from `ranges`.
        They are used as a whole, so many variables do not make a launch slower.
    explain : callable, optional
        Describes the former contents of an address; returns None if unknown.
    about : callable, optional
        Returns more words on the range between two addresses, to follow its size in a message.

    Attributes
    ----------
    observe : callable or None
        Returns the observer of the accesses to a range, for its address and size.
    """

    def __init__(
        self,
        ranges: Iterable[tuple[int, int]],
        variables: Sequence[tuple[list[int], list[int]]] = (),
        explain: Callable[[int], Explanation | None] = lambda _: None,
        about: Callable[[int, int], str] = lambda _begin, _end: "",
    ) -> None:
        self._variables = variables
        self._explain = explain
        self._about = about
        self.observe: Callable[[int, int], Any] | None = None
        self._ranges = [(int(base), int(size)) for base, size in ranges]
        self._lay_out()

    def add(self, ranges: list[tuple[int, int]]) -> None:
        """Add ranges."""
        self._ranges += ranges
        self._lay_out()

    def remove(self, base: int) -> None:
        """Remove the range that begins at `base`, if any."""
        self._ranges = [found for found in self._ranges if found[0] != base]
        self._lay_out()

    def _lay_out(self) -> None:
        joined: list[list[int]] = []
        for base, size in sorted(r for r in self._ranges if r[1] > 0):
            if joined and base < joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], base + size)
            else:
                joined.append([base, base + size])
        self.bases = [base for base, _ in joined]
        self.ends = [end for _, end in joined]
        # Each module's variables are in one allocation of their own. As a whole they fit between
        # two other ranges, so no sort is needed.
        for starts, ends in self._variables:
            if starts:
                at = bisect_right(self.bases, starts[0])
                self.bases[at:at] = starts
                self.ends[at:at] = ends
        # Both are made on demand, because most launches use few of many ranges.
        self._arrays: tuple[Lanes, Lanes] | None = None
        self._views: dict[int, tuple[int, Bytes]] = {}

    def locate(self, group: Threads, address: Lanes, size: int, verb: str) -> list[Piece]:
        """Find the bytes of an access; raise the fault of the first lane outside."""
        check_aligned(group, address, size, verb, "global")
        # Nearly always all lanes are in one range, which the extremes tell.
        low, high = int(address.min()), int(address.max())
        index = bisect_right(self.bases, low) - 1
        if index >= 0 and high + size <= self.ends[index]:
            base, view = self._view(index)
            return [Piece(None, view, (address - np.uint64(base)).view(np.int64), view.shadow)]
        return self._locate_each(group, address, size, verb)

    def require(self, group: Threads, address: int, size: int, verb: str) -> None:
        """Raise the fault of a thread that starts an access to bytes outside of one range."""
        index = bisect_right(self.bases, address) - 1
        if index < 0 or address + size > self.ends[index]:
            what = f"{size}-byte {verb} of global address {address:#x} by a copy or a fill"
            raise self._outside(group, 0, address, what)

    def allocation_of(self, address: int) -> str:
        """Describe the allocation that contains an address; empty if there is none."""
        index = bisect_right(self.bases, address) - 1
        if index < 0 or address >= self.ends[index]:
            return ""
        base, end = self.bases[index], self.ends[index]
        return f"{counted(address - base, 'byte')} into {self._name(base, end)}"

    def _outside(self, group: Threads, index: int, address: int, what: str) -> Fault:
        """Return the fault of an access outside every range; `what` begins its message."""
        lane = group.lane_at(index)
        # Best explanation first: a freed block, then null with an offset, then the nearest range.
        known = self._explain(address)
        if known is not None:
            return Fault(
                ILLEGAL_ADDRESS,
                f"{what}: {known.text}",
                kind=known.kind,
                lane=lane,
                related=list(known.related),
            )
        if address < _NULL_PAGE:
            far = f", {counted(address, 'byte')} from it" if address else ""
            reason = f"{what}: a null pointer{far}"
            return Fault(ILLEGAL_ADDRESS, reason, kind="null-pointer", lane=lane)
        where, distance = self._describe(address)
        reason = f"{what}: outside every allocation, {where}"
        return Fault(ILLEGAL_ADDRESS, reason, lane=lane, distance=distance)

    def _describe(self, address: int) -> tuple[str, int]:
        """Say where `address` is relative to the nearest range, and return the bytes between."""
        if not self.bases:
            return "the launch has no memory", 1 << 64
        index = bisect_right(self.bases, address) - 1
        candidates = [i for i in (index, index + 1) if 0 <= i < len(self.bases)]

        def distance(i: int) -> int:
            return max(self.bases[i] - address, address - self.ends[i] + 1, 0)

        nearest = min(candidates, key=distance)
        base, end = self.bases[nearest], self.ends[nearest]
        away = 0
        if address >= end:
            away = address - end
            where = f"{counted(away, 'byte')} after the end of"
        elif address < base:
            away = base - address
            where = f"{counted(away, 'byte')} before"
        else:
            where = "crossing the end of"
        return f"{where} {self._name(base, end)}", away

    def _name(self, base: int, end: int) -> str:
        size = counted(end - base, "byte")
        return f"an allocation of {size} at {base:#x}{self._about(base, end)}"

    def _locate_each(self, group: Threads, address: Lanes, size: int, verb: str) -> list[Piece]:
        if self._arrays is None:
            self._arrays = np.array(self.bases, np.uint64), np.array(self.ends, np.uint64)
        bases, ends = self._arrays
        index = np.searchsorted(bases, address, side="right") - 1
        known = index >= 0
        if self.bases:
            safe = np.maximum(index, 0)
            known &= address + np.uint64(size) <= ends[safe]
            # An address near 2**64 wraps: it is in no range.
            known &= address + np.uint64(size) > address
        if not known.all():
            lane = int(np.flatnonzero(~known)[0])
            bad = int(address[lane])
            raise self._outside(group, lane, bad, f"{size}-byte {verb} of global address {bad:#x}")
        pieces = []
        # Lanes of a warp may each have a pointer to another array.
        for i in np.unique(index):
            lanes = np.flatnonzero(index == i)
            base, view = self._view(int(i))
            at = (address[lanes] - np.uint64(base)).view(np.int64)
            pieces.append(Piece(lanes, view, at, view.shadow))
        return pieces

    def _view(self, index: int) -> tuple[int, Bytes]:
        found = self._views.get(index)
        if found is None:
            # Whole 16-byte units around the range; the bytes outside it are never touched.
            base, end = self.bases[index] & ~15, (self.ends[index] + 15) & ~15
            found = self._views[index] = (base, Bytes.at_address(base, end - base))
            if self.observe is not None:
                found[1].shadow = self.observe(base, end - base)
        return found


def check_aligned(group: Threads, address: Lanes, size: int, verb: str, space: str) -> None:
    """Raise the fault of the first lane whose address is not a multiple of `size`."""
    if size == 1:
        return
    wrong = address & address.dtype.type(size - 1)
    if wrong.any():
        lane = int(np.flatnonzero(wrong)[0])
        raise Fault(
            MISALIGNED_ADDRESS,
            f"{size}-byte {verb} of {space} address {int(address[lane]):#x}, "
            f"which is not a multiple of {size}",
            lane=group.lane_at(lane),
        )
