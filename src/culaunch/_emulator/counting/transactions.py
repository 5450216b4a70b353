"""How the accesses of warps are divided: into sectors of global memory, and over banks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.types import Lanes

SECTOR = 32
_BANKS, _BANK = 32, 4


def requests(lanes: Lanes) -> int:
    """Return how many warps access memory."""
    return int(np.unique(lanes >> 5).shape[0])


def sectors(lanes: Lanes, address: Lanes, size: int) -> tuple[Lanes, int, int]:
    """Return the sectors that all warps touch, how many each does in sum, and the ideal number."""
    warp, first = lanes >> 5, address >> 5
    count = ((address + (size - 1)) >> 5) - first + 1
    most = int(count.max())
    touched = first
    if most > 1:
        # An access of several sectors, such as a copy's.
        owner = np.repeat(np.arange(count.shape[0]), count)
        start = np.cumsum(count) - count
        touched = first[owner] + np.arange(owner.shape[0]) - start[owner]
        number = _distinct(warp[owner], touched)[0].shape[0]
    else:
        number = _distinct(warp, touched)[0].shape[0]
    owners, _ = _distinct(warp, address)
    _, addresses = np.unique(owners, return_counts=True)
    ideal = int((-(-addresses * size // SECTOR)).sum())
    return np.unique(touched), number, ideal


def wavefronts(lanes: Lanes, address: Lanes, size: int) -> tuple[int, int]:
    """Return the passes of all warps through the banks, and the number without conflicts.

    A pass serves 128 bytes: of accesses of 8 and 16 bytes, those of half and a quarter of a warp.
    """
    parts = min(max(size // _BANK, 1), 4)
    part = (lanes >> 5) * parts + (lanes & 31) // (32 // parts)
    words = max(size // _BANK, 1)
    word = ((address // _BANK)[:, None] + np.arange(words)).reshape(-1)
    # Threads that access one word share it.
    part, word = _distinct(np.repeat(part, words), word)
    bank, depth = np.unique(part * _BANKS + word % _BANKS, return_counts=True)
    starts = np.flatnonzero(np.diff(bank // _BANKS, prepend=-1))
    return int(np.maximum.reduceat(depth, starts).sum()), int(starts.shape[0])


def atomic_passes(lanes: Lanes, address: Lanes) -> int:
    """Return the steps of all warps, if each step updates an address once."""
    order = np.lexsort((address, lanes >> 5))
    warp, where = lanes[order] >> 5, address[order]
    starts = np.flatnonzero(np.diff(warp, prepend=-1) | np.diff(where, prepend=where[0] - 1))
    depth = np.diff(starts, append=warp.shape[0])
    owners = np.flatnonzero(np.diff(warp[starts], prepend=-1))
    return int(np.maximum.reduceat(depth, owners).sum())


def _distinct(owner: Any, key: Any) -> tuple[Lanes, Lanes]:
    """Return the different pairs, sorted by owner."""
    order = np.lexsort((key, owner))
    owner, key = owner[order], key[order]
    new = np.ones(owner.shape[0], bool)
    new[1:] = (owner[1:] != owner[:-1]) | (key[1:] != key[:-1])
    return owner[new], key[new]
