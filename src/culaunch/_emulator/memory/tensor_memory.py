"""The tensor memory of blocks: 128 lanes of 512 columns of 32 bits, which a kernel allocates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.fault import ILLEGAL_ADDRESS, ILLEGAL_INSTRUCTION, LAUNCH_FAILED, Fault

if TYPE_CHECKING:
    from culaunch._emulator.memory.threads import Threads
    from culaunch._emulator.types import Lanes

_LANES, _COLUMNS, _UNIT = 128, 512, 32


class TensorMemory:
    """The tensor memory of each block of a chunk.

    Attributes
    ----------
    words : numpy.ndarray
        The contents, of shape (blocks, lanes, columns).
    written : numpy.ndarray
        When an asynchronous instruction last wrote each column of each block, if races are checked.
    """

    def __init__(self, blocks: int) -> None:
        self.words: Lanes = np.zeros((blocks, _LANES, _COLUMNS), np.uint32)
        self.written: Lanes = np.zeros((blocks, _COLUMNS), np.int32)
        # The first column of a column's allocation, plus one; 0 if it is free.
        self._owner: Lanes = np.zeros((blocks, _COLUMNS), np.int32)
        self._relinquished: Lanes = np.zeros(blocks, bool)

    def alloc(self, lane: int, block: int, count: int) -> int:
        """Allocate columns and return the first; `lane` is the one that a fault names."""
        if count not in (32, 64, 128, 256, 512):
            reason = f"tcgen05.alloc takes 32, 64, 128, 256 or 512 columns (got {count})"
            raise Fault(ILLEGAL_INSTRUCTION, reason, lane=lane)
        if self._relinquished[block]:
            reason = "tcgen05.alloc after the block has relinquished its permit to allocate"
            raise Fault(ILLEGAL_INSTRUCTION, reason, lane=lane)
        for first in range(0, _COLUMNS - count + 1, _UNIT):
            if not self._owner[block, first : first + count].any():
                self._owner[block, first : first + count] = first + 1
                return first
        raise Fault(
            LAUNCH_FAILED,
            f"tcgen05.alloc waits for {count} free columns in a row, but the block itself holds "
            f"{int((self._owner[block] != 0).sum())} of {_COLUMNS}: free them first",
            kind="deadlock",
            lane=lane,
        )

    def free(self, lane: int, block: int, address: int, count: int) -> None:
        """Free an allocation, which must be given whole."""
        owned = np.flatnonzero(self._owner[block] == address + 1)
        if owned.shape[0] != count or not count:
            raise Fault(
                ILLEGAL_INSTRUCTION,
                f"tcgen05.dealloc of {count} columns at {address:#x}, which is not an allocation "
                "of that size",
                lane=lane,
            )
        self._owner[block, owned] = 0

    def relinquish(self, blocks: Lanes) -> None:
        """Forbid further allocations."""
        self._relinquished[blocks] = True

    def require_free(self, lane: int, blocks: Lanes) -> None:
        """Report columns that blocks still hold when their last thread exits."""
        held = (self._owner[blocks] != 0).sum(axis=1)
        if held.any():
            raise Fault(
                LAUNCH_FAILED,
                f"the block exits with {int(held.max())} columns of tensor memory allocated: "
                "call tcgen05.dealloc first",
                kind="leak",
                lane=lane,
            )

    def check(self, group: Threads, index: Lanes, block: Lanes, lane: Lanes, column: Lanes) -> None:
        """Require that places, one row for each access, are allocated.

        `index` has the position in the group of each row's thread.
        """
        # A column or lane that is too large is as bad as one that is free.
        inside = (column < _COLUMNS) & (lane < _LANES)
        good = inside & (self._owner[block, np.where(inside, column, 0)] != 0)
        if good.all():
            return
        good, lane, column = np.broadcast_arrays(good, lane, column)
        row = tuple(np.argwhere(~good)[0])
        raise Fault(
            ILLEGAL_ADDRESS,
            f"tensor memory at lane {int(lane[row])}, column {int(column[row])} is not allocated",
            lane=group.lane_at(int(index[row[0]])),
        )
