"""Memory that each block (shared) or each thread (local) has a copy of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.fault import ILLEGAL_ADDRESS, Fault
from culaunch._emulator.memory.bytes import Bytes, Piece
from culaunch._emulator.memory.ranges import check_aligned

if TYPE_CHECKING:
    from culaunch._emulator.memory.threads import Threads
    from culaunch._emulator.types import Lanes


class Scratch:
    """One row of `size` bytes for each owner.

    Parameters
    ----------
    space : str
        ``"shared"``, ``"local"`` or ``"param"``, for messages.
    rows : int
        How many owners there are.
    size : int
        The bytes that each may use.
    """

    def __init__(self, space: str, rows: int, size: int) -> None:
        self.space = space
        self.rows = rows
        self.size = size
        # Rows begin at multiples of 16. Therefore an offset has the same alignment as its place in
        # the array, and words of every size can be counted through all rows.
        self.stride = -(-max(size, 1) // 16) * 16
        self.array: Lanes = np.zeros(rows * self.stride, np.uint8)
        self.data = Bytes(self.array)
        self.shadow: Any = None

    def locate(
        self, group: Threads, row: Lanes, offset: Lanes, size: int, verb: str
    ) -> list[Piece]:
        """Find the bytes of an access at `offset` in each lane's row."""
        check_aligned(group, offset, size, verb, self.space)
        # Offsets are unsigned: a negative one is very large, and found by the same comparison.
        if int(offset.max()) + size > self.size:
            return self._beyond(group, row, offset, size, verb)
        at = offset.astype(np.int64)
        if self.rows > 1:
            at = at + row * self.stride
        return [Piece(None, self.data, at, self.shadow)]

    def grow(self, size: int) -> None:
        """Make each row at least `size` bytes, keeping their contents."""
        if size <= self.size:
            return
        old, kept = self.array.reshape(self.rows, self.stride), self.stride
        # Double the size, so a recursion does not copy at every level.
        self.size = max(size, 2 * self.size)
        self.stride = -(-self.size // 16) * 16
        self.array = np.zeros(self.rows * self.stride, np.uint8)
        self.array.reshape(self.rows, self.stride)[:, :kept] = old
        self.data = Bytes(self.array)
        if self.shadow is not None:
            self.shadow.grow(kept)

    def _beyond(
        self,
        group: Threads,
        row: Lanes,  # noqa: ARG002  (who has more than rows of one size asks)
        offset: Lanes,
        size: int,
        verb: str,
    ) -> list[Piece]:
        """Find the bytes of an access that does not fit in the row."""
        self._outside(group, offset, size, verb)

    def _outside(self, group: Threads, offset: Lanes, size: int, verb: str) -> NoReturn:
        bad = np.flatnonzero(offset > max(self.size - size, -1))
        lane = int(bad[0]) if self.size >= size and bad.size else 0
        owner = "block" if self.space == "shared" else "thread"
        raise Fault(
            ILLEGAL_ADDRESS,
            f"{size}-byte {verb} of {self.space} address {int(offset[lane]):#x}: "
            f"the {owner} has {counted(self.size, 'byte')} of {self.space} memory",
            lane=group.lane_at(lane),
        )
