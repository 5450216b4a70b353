"""Which warps of a block know which accesses of the others by named barriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.types import Lanes


class BarrierClocks:
    """Vector clocks of warps: they tell barriers apart that are complete at the same time.

    A barrier with a count orders only the threads that take part. A clock has the time until which
    a warp knows the accesses of each warp of its block. The lanes of a warp share it: a barrier
    that some of them reach counts for all, so a race can be missed, but no order.
    """

    def __init__(self, chunk: Chunk) -> None:
        self._width = chunk.width
        self._warps = chunk.width // 32
        self._blocks = chunk.blocks
        # A row for each warp of the chunk; made when the first of these barriers is reached.
        self._known: Lanes | None = None
        # By barrier: for each block, what those know who leave next.
        self._brought: dict[int, Lanes] = {}

    def arrive(self, number: int, lanes: Lanes, now: int) -> None:
        """Bring what the warps of `lanes` know to a barrier, and that they arrive now."""
        if self._known is None:
            self._known = np.zeros((self._blocks * self._warps, self._warps), np.int32)
        if number not in self._brought:
            self._brought[number] = np.zeros((self._blocks, self._warps), np.int32)
        warps = np.unique(lanes // 32)
        blocks = warps // self._warps
        brought = self._brought[number]
        np.maximum.at(brought, blocks, self._known[warps])
        brought[blocks, warps % self._warps] = now

    def leave(self, number: int, lanes: Lanes, done: Lanes) -> None:
        """Tell `lanes` what was brought to a barrier, which is complete in the blocks `done`."""
        if self._known is None or number not in self._brought:
            return
        brought = self._brought[number]
        warps = np.unique(lanes // 32)
        self._known[warps] = np.maximum(self._known[warps], brought[warps // self._warps])
        brought[done] = 0

    def known_of_each(self, lanes: Lanes) -> Lanes | int:
        """Return for each lane the time until which one of `lanes` knows its accesses."""
        if self._known is None:
            return 0
        known = np.zeros((self._blocks, self._warps), np.int32)
        np.maximum.at(known, lanes // self._width, self._known[lanes // 32])
        return np.repeat(known.reshape(-1), 32)

    def ordered(self, lanes: Lanes, others: Lanes, times: Lanes) -> Lanes:
        """Return whether each lane knows accesses of lanes of its block at `times`."""
        if self._known is None:
            return np.zeros(lanes.shape, bool)
        same = lanes // self._width == others // self._width
        known = self._known[lanes // 32, others % self._width // 32]
        before: Lanes = same & (times <= known)
        return before
