"""The shared memory of blocks, which the other blocks of a cluster reach, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.fault import ILLEGAL_ADDRESS, Fault
from culaunch._emulator.memory.bytes import Piece
from culaunch._emulator.memory.scratch import Scratch

if TYPE_CHECKING:
    from culaunch._emulator.memory.threads import Threads
    from culaunch._emulator.types import Lanes

# An address names a block of the cluster above these bits, which hold any offset. `mapa` and the
# address of a variable in a cluster have a rank there. CUTLASS clears the lowest bit of the rank to
# name the even block of a pair, so another bit marks a name.
RANK_SHIFT = 24
_NAMED = 32
_NAMES = 0xFF  # a cluster has at most sixteen blocks


def name_rank(address: Lanes, rank: Lanes | int) -> Lanes:
    """Return the same place in the shared memory of a block of the cluster."""
    dtype = address.dtype.type
    shift = dtype(RANK_SHIFT)
    # A generic address keeps the bits that name its window.
    kept = address & ~(dtype(_NAMES) << shift)
    name = np.minimum(rank, _NAMES - _NAMED).astype(dtype) + dtype(_NAMED)
    named: Lanes = kept | name << shift
    return named


def named_rank(address: Lanes) -> Lanes:
    """Return the ranks that addresses name, -1 where they name none.

    An address without a rank is the executing block's own, in ``shared::cluster`` as well (PTX ISA,
    "State Spaces"). An offset that is too large has a rank that no block has.
    """
    name = (address >> address.dtype.type(RANK_SHIFT)).astype(np.int64)
    ranks: Lanes = np.where(name == 0, -1, np.where(name < _NAMED, _NAMES, name - _NAMED))
    return ranks


class SharedMemory(Scratch):
    """A row for each block of a chunk, whose clusters have `cluster` blocks each.

    `alive` has the threads of each block that have not exited.
    """

    def __init__(self, rows: int, size: int, cluster: int, alive: Lanes) -> None:
        super().__init__("shared", rows, size)
        self.cluster = cluster
        self.alive = alive

    def _beyond(
        self, group: Threads, row: Lanes, offset: Lanes, size: int, verb: str
    ) -> list[Piece]:
        """Find the bytes of an access to other blocks of the cluster."""
        rank = named_rank(offset)
        inner = offset & offset.dtype.type((1 << RANK_SHIFT) - 1)
        outside = inner.astype(np.int64) + size > self.size
        if (outside | (rank >= self.cluster)).any():
            # An address that belongs to no block becomes an offset that is far too large.
            self._outside(group, np.where(rank >= self.cluster, offset, inner), size, verb)
        row = np.where(rank < 0, row, row // self.cluster * self.cluster + rank)
        gone = np.flatnonzero(self.alive[np.broadcast_to(row, (group.n,))] == 0)
        if gone.shape[0]:
            raise Fault(
                ILLEGAL_ADDRESS,
                f"{size}-byte {verb} of the shared memory of a block that has exited",
                lane=group.lane_at(int(gone[0])),
            )
        return [Piece(None, self.data, inner.astype(np.int64) + row * self.stride, self.shadow)]
