"""Which accesses of a warp's lanes come before which: its lanes run independently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.types import Lanes


class WarpOrder:
    """The knowledge of each lane about each other lane of its warp.

    Lanes that have waited for each other know all that the others did and knew. These are vector
    clocks, one for each lane. ``_known[warp, a, b]`` is the time until which lane a knows the
    accesses of lane b.
    """

    def __init__(self, chunk: Chunk) -> None:
        self._known: Lanes = np.zeros((chunk.size // 32, 32, 32), np.int32)

    def ordered(self, lanes: Lanes, others: Lanes, times: Lanes) -> Lanes:
        """Return whether each lane is ordered after the other one's access at a time."""
        known = self._known[lanes // 32, lanes % 32, others % 32]
        after: Lanes = (lanes // 32 == others // 32) & (times <= known)
        return after

    def known_of_each(self, lanes: Lanes) -> Lanes:
        """Return for each lane the time until which one of `lanes` knows its accesses."""
        known = np.zeros((self._known.shape[0], 32), np.int32)
        np.maximum.at(known, lanes // 32, self._known[lanes // 32, lanes % 32])
        return known.reshape(-1)

    def meet(self, lanes: Lanes, masks: Lanes, now: int) -> None:
        """Record that each of `lanes` has waited for the lanes of its warp in its mask."""
        warps = np.unique(lanes // 32)
        # The common case: whole warps whose lanes all wait for each other.
        if lanes.shape[0] == 32 * warps.shape[0] and (masks == 0xFFFFFFFF).all():
            self._known[warps] = now
        else:
            # A mask may name lanes that have exited, and lanes that come later to another
            # bar.warp.sync: only those that are here together have met.
            present = np.zeros(self._known.shape[0], np.uint32)
            bits = np.uint32(1) << (lanes & 31).astype(np.uint32)
            np.bitwise_or.at(present, lanes // 32, bits)
            named = np.broadcast_to(masks, lanes.shape) & present[lanes // 32]
            for mask in np.unique(named).tolist():
                self._meet_some(np.unique(lanes[named == mask] // 32), mask, now)

    def _meet_some(self, warps: Lanes, mask: int, now: int) -> None:
        some = np.array([lane for lane in range(32) if mask >> lane & 1], np.int64)
        if not some.shape[0]:
            return
        # First combine their knowledge of all lanes; then record that they are here now.
        together = np.ix_(warps, some)
        self._known[together] = self._known[together].max(axis=1, keepdims=True)
        self._known[np.ix_(warps, some, some)] = now
