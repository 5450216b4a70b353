"""Arrays of the host that a kernel may read and not write."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.fault import ILLEGAL_ADDRESS, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.memory.threads import Threads
    from culaunch._emulator.types import Lanes


class ReadOnlyMemory:
    """The parts of some arrays that no launch argument allows to be written.

    Parameters
    ----------
    arrays : iterable of NamedArray
    writable : iterable of (int, int)
        Address and size of the other arrays: memory that is also in one of them can be written.
    """

    def __init__(self, arrays: Iterable[NamedArray], writable: Iterable[tuple[int, int]]) -> None:
        parts: list[tuple[int, int, NamedArray]] = []
        allowed = sorted(writable)
        # Remove the writable parts of each array. The rest are disjoint pieces in ascending order,
        # which allows a binary search.
        end = 0
        for array in sorted(arrays):
            at = max(array.base, end)
            end = max(end, array.base + array.size)
            for base, size in allowed:
                if at < base < end:
                    parts.append((at, base, array))
                if base <= end:
                    at = max(at, base + size)
            if at < end:
                parts.append((at, end, array))
        self._parts = parts
        self._bases = [part[0] for part in parts]
        self._base_array = np.array(self._bases, np.uint64)
        self._end_array = np.array([part[1] for part in parts], np.uint64)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The start and the end of each part, ascending."""
        return [(start, end) for start, end, _ in self._parts]

    def check(self, group: Threads, address: Lanes, size: int, verb: str) -> None:
        """Raise the fault of the first lane whose access touches a read-only byte."""
        if not self._parts:
            return
        # The extremes first, as in `GlobalMemory`: they clear most accesses without a look at each
        # lane.
        low, last = int(address.min()), int(address.max()) + size - 1
        index = bisect_right(self._bases, last) - 1
        if index < 0 or self._parts[index][1] <= low:
            return
        # Only the piece that begins at or before an access's last byte can overlap the access from
        # below. It does if the piece ends behind the first byte.
        last_bytes = address + np.uint64(size - 1)
        before = np.searchsorted(self._base_array, last_bytes, side="right") - 1
        wrong = (before >= 0) & (self._end_array[np.maximum(before, 0)] > address)
        if not wrong.any():
            return
        lane = int(np.flatnonzero(wrong)[0])
        array = self._parts[int(before[lane])][2]
        raise Fault(
            ILLEGAL_ADDRESS,
            f"{size}-byte {verb} of global address {int(address[lane]):#x}, in {array.name}, which "
            f"is a read-only array of {counted(array.size, 'byte')} at {array.base:#x}",
            kind="read-only-write",
            lane=group.lane_at(lane),
        )


class NamedArray(NamedTuple):
    """Its place, and its name in messages, such as ``"argument 2"``."""

    base: int
    size: int
    name: str
