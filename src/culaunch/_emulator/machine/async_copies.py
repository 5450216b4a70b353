"""cp.async: copies that have been started, and are there when their thread has waited for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.types import Lanes

__all__ = ["AsyncCopies"]


class AsyncCopies:
    """The copies of a chunk for which no thread has waited.

    The emulator copies at once, which is one of the orders that the hardware may choose; this
    records the results that a kernel must not rely on.

    Attributes
    ----------
    owner : numpy.ndarray
        For each unit of shared memory that is being copied to: the lane, plus one.
    """

    def __init__(self, chunk: Chunk) -> None:
        # Units start as words of four bytes, like those of `Races`, which refines both together.
        # Zero means no thread, so one test of a whole access shows that no copy is in its way.
        self.owner: Lanes = np.zeros(chunk.shared.array.shape[0] // 4, np.int32)
        self._groups: Lanes = np.zeros(chunk.size, np.int64)
        self._copies: list[_Copy] = []

    def start(self, lanes: Lanes, at: Lanes) -> None:
        """Start copies of units."""
        self.owner[at] = lanes + 1
        self._copies.append(_Copy(lanes, at, self._groups[lanes]))

    def refine(self, times: int) -> None:
        """Make several units of each."""
        self.owner = np.repeat(self.owner, times)
        parts = np.arange(times)
        self._copies = [
            _Copy(
                np.repeat(copy.lanes, times),
                (copy.at[:, None] * times + parts).reshape(-1),
                np.repeat(copy.number, times),
            )
            for copy in self._copies
        ]

    def commit(self, lanes: Lanes) -> None:
        """Make a group of the copies that each lane has started since its last group."""
        self._groups[lanes] += 1

    def finish(self, lanes: Lanes, newest: int | None) -> list[tuple[Lanes, Lanes]]:
        """End the copies of `lanes` and return them.

        Parameters
        ----------
        newest : int or None
            How many of the newest groups continue. None also ends copies without a group.
        """
        # A copy belongs to the group that its lane will commit next: the lane's count of commits.
        waits = np.zeros(self._groups.shape, bool)
        waits[lanes] = True
        # Copies started by another lane of the same instruction stay. A thread waits only for its
        # own copies, and only a barrier makes them visible to others.
        ended, left = [], []
        for copy in self._copies:
            done = waits[copy.lanes]
            # wait_group lets the newest groups of each lane continue. wait_all also ends copies
            # that are not in a group yet, which have the number of the lane's next commit.
            if newest is not None:
                done &= copy.number < self._groups[copy.lanes] - newest
            if done.any():
                self.owner[copy.at[done]] = 0
                ended.append((copy.lanes[done], copy.at[done]))
            if not done.all():
                left.append(_Copy(copy.lanes[~done], copy.at[~done], copy.number[~done]))
        self._copies = left
        return ended


class _Copy(NamedTuple):
    """Units that are copied, with the lane that does it and the number of its group."""

    lanes: Lanes
    at: Lanes
    number: Lanes
