"""The threads that accessed each unit of a memory, as far as a later access may race with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.machine.warp_order import WarpOrder
    from culaunch._emulator.types import Lanes

# Two words that are not lanes. Every comparison with them, such as `>= 0`, relies on their sign.
NOBODY = -1
MANY = -2


class Access(NamedTuple):
    """A lane and an offset for every unit of an access."""

    lanes: Lanes
    at: Lanes
    verb: str


class Accesses:
    """For each unit the lanes of a warp that accessed it: `NOBODY`, `MANY` warps, or one's."""

    def __init__(self, length: int, order: WarpOrder) -> None:
        self.order = order
        self.warp: Lanes = np.full(length, NOBODY, np.int32)
        self._mask: Lanes = np.zeros(length, np.uint32)
        self._time: Lanes = np.zeros(length, np.int32)

    def refine(self, times: int) -> None:
        """Make several units of each."""
        self.warp = np.repeat(self.warp, times)
        self._mask = np.repeat(self._mask, times)
        self._time = np.repeat(self._time, times)

    def against(self, access: Access) -> Lanes:
        """Return for each unit a lane that an access races with, `MANY` or `NOBODY`."""
        warp = self.warp[access.at]
        others = np.where(warp == MANY, MANY, NOBODY)
        # Only barriers order lanes of another warp, and a barrier clears the units. A thread that
        # is still recorded here raced.
        foreign = np.flatnonzero((warp >= 0) & (warp != access.lanes // 32))
        others[foreign] = warp[foreign] * 32 + _lowest(self._mask[access.at[foreign]])
        own, left = self._unordered(access)
        others[own] = np.where(left != 0, access.lanes[own] // 32 * 32 + _lowest(left), NOBODY)
        return others

    def add(self, access: Access) -> None:
        """Add an access, which may replace earlier accesses that are ordered before it."""
        lanes, at = access.lanes, access.at
        warp = self.warp[at]
        mask = np.uint32(1) << (lanes & 31).astype(np.uint32)
        time = self.order.now(lanes)
        # Lanes of the same warp that are not ordered before this access stay next to it. The others
        # can be dropped: any access after this one also comes after them.
        own, left = self._unordered(access)
        mask[own] |= left
        # The earlier of two times: this may miss a race, but never invents one.
        kept = own[left != 0]
        time[kept] = np.minimum(time[kept], self._time[at[kept]])
        # After accesses by two warps, a unit remembers neither, until a barrier or a write. Any
        # access by a third warp would race with one of them anyway.
        many = at[(warp == MANY) | ((warp >= 0) & (warp != lanes // 32))]
        # Several lanes of the access, also of several warps, may access one unit. First the old
        # record is removed, then every lane of the access adds its bit. `at` may name a unit many
        # times, and a plain assignment would count it once.
        self._mask[at] = 0
        np.bitwise_or.at(self._mask, at, mask)
        self._time[at] = time
        self.warp[at] = lanes // 32
        # The assignment above left the last lane's warp. A unit at which another lane reads
        # something else was accessed by several warps.
        self.warp[at[self.warp[at] != lanes // 32]] = MANY
        self.warp[many] = MANY

    def _unordered(self, access: Access) -> tuple[Lanes, Lanes]:
        """Return the units that other lanes of the warp accessed, and the unordered lanes."""
        lanes, at = access.lanes, access.at
        others = self._mask[at] & ~(np.uint32(1) << (lanes & 31).astype(np.uint32))
        index = np.flatnonzero((self.warp[at] == lanes // 32) & (others != 0))
        seen = self.order.seen(lanes[index], self._time[at[index]])
        return index, others[index] & ~seen


def _lowest(mask: Lanes) -> Lanes:
    """Return the index of the lowest bit that is set."""
    # Two's complement isolates the lowest bit; powers of two up to 2**31 have exact logarithms.
    lowest = mask & (~mask + np.uint32(1))
    index: Lanes = np.log2(np.maximum(lowest, 1).astype(np.float64)).astype(np.int32)
    return index
