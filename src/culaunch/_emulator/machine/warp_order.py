"""Which accesses of a warp's lanes come before which: its lanes run independently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.types import Lanes

__all__ = ["WarpOrder"]


class WarpOrder:
    """A clock for each warp, and the knowledge of each lane about each other lane.

    The clock ticks when some lanes of the warp wait for each other. From then on each of them knows
    all that the others did and knew: these are vector clocks, one for each lane.

    Attributes of a warp: `_clock` is its time, and ``_known[warp, a, b]`` is the time until which
    lane a knows what lane b did.
    """

    def __init__(self, chunk: Chunk) -> None:
        warps = chunk.size // 32
        # Time begins at 1, and no lane knows anything before: the accesses of a lane at time 1 are
        # not ordered for the others until they meet.
        self._clock: Lanes = np.ones(warps, np.int32)
        self._known: Lanes = np.zeros((warps, 32, 32), np.int32)

    def now(self, lanes: Lanes) -> Lanes:
        """Return the time of each lane's warp."""
        time: Lanes = self._clock[lanes // 32]
        return time

    def ordered(self, lanes: Lanes, others: Lanes, time: Lanes) -> Lanes:
        """Return whether each lane is ordered after the other one's access at a time."""
        # Across warps nothing but a barrier orders, and that makes the units forget
        # (`Races.barrier`).
        known = self._known[lanes // 32, lanes % 32, others % 32]
        after: Lanes = (lanes // 32 == others // 32) & (time <= known)
        return after

    def seen(self, lanes: Lanes, time: Lanes) -> Lanes:
        """Return for each lane the mask of those of its warp after whose `time` it comes."""
        known = self._known[lanes // 32, lanes % 32] >= time[:, None]
        return np.packbits(known, axis=1, bitorder="little").view(np.uint32)[:, 0]

    def meet(self, lanes: Lanes, masks: Lanes) -> None:
        """Record that each of `lanes` has waited for the lanes of its warp in its mask."""
        warps = np.unique(lanes // 32)
        # The common case: whole warps whose lanes all wait for each other.
        if lanes.shape[0] == 32 * warps.shape[0] and (masks == 0xFFFFFFFF).all():
            self._known[warps] = self._clock[warps][:, None, None]
        else:
            # A mask may name lanes that have exited, and lanes that come later to another
            # bar.warp.sync: only those that are here together have met.
            present = np.zeros(self._clock.shape, np.uint32)
            bits = np.uint32(1) << (lanes & 31).astype(np.uint32)
            np.bitwise_or.at(present, lanes // 32, bits)
            named = np.broadcast_to(masks, lanes.shape) & present[lanes // 32]
            for mask in np.unique(named).tolist():
                self._meet_some(np.unique(lanes[named == mask] // 32), mask)
        # A lane's actions from now on have a later time than any lane can know yet.
        self._clock[warps] += 1

    def _meet_some(self, warps: Lanes, mask: int) -> None:
        some = np.array([lane for lane in range(32) if mask >> lane & 1], np.int64)
        if not some.shape[0]:
            return
        # First combine their knowledge of all lanes; then record that they are here now.
        together = np.ix_(warps, some)
        self._known[together] = self._known[together].max(axis=1, keepdims=True)
        self._known[np.ix_(warps, some, some)] = self._clock[warps][:, None, None]
