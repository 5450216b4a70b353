"""A run of bytes that lanes gather from and scatter to."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from culaunch._emulator.memory.how import PLAIN, How
from culaunch._emulator.types import BITS, Lanes

_SHIFTS = {1: 0, 2: 1, 4: 2, 8: 3}


class Bytes:
    """Views of the same bytes as unsigned words of each size.

    Parameters
    ----------
    array : numpy.ndarray
        Bytes, a multiple of 8 of them. The object keeps it alive.

    Attributes
    ----------
    shadow : object or None
        The observer of the accesses to global memory.
    """

    def __init__(self, array: Lanes, *, is_global: bool = False) -> None:
        self.is_global = is_global
        self.shadow: Any = None
        # Views of every width once, since making one costs as much as a small access.
        self.by_size = {size: array.view(dtype) for size, dtype in BITS.items()}

    @classmethod
    def at_address(cls, address: int, size: int) -> Bytes:
        """View host memory; `address` and `size` are multiples of 8."""
        # The view does not own the memory: the owner of the range keeps it alive for the launch.
        raw = memoryview((ctypes.c_uint8 * size).from_address(address))
        return cls(np.frombuffer(raw, np.uint8), is_global=True)


class Piece(NamedTuple):
    """The places that some lanes of an access touch: `at` are byte offsets in `data`.

    `lanes` indexes the lanes of the group, None for all of them. `shadow` observes reads and writes
    (for uninitialized memory and races), or is None.
    """

    lanes: Lanes | None
    data: Bytes
    at: Lanes
    shadow: Any = None


def take(values: Lanes, lanes: Lanes | None) -> Lanes:
    """Return the values of some lanes; a uniform value stays uniform."""
    return values if lanes is None or values.shape[0] == 1 else values[lanes]


def load(group: Any, pieces: list[Piece], size: int, count: int, how: How = PLAIN) -> list[Lanes]:
    """Read `count` consecutive words of `size` bytes in each lane."""
    for piece in pieces:
        if piece.shadow is not None:
            piece.shadow.on_read(group, piece, size * count, how)
    first = pieces[0]
    if first.lanes is None:
        # The quick way, when all lanes are in one array: one NumPy call for each word.
        words, at = first.data.by_size[size], first.at >> _SHIFTS[size]
        return [words.take(at + k if k else at) for k in range(count)]
    # Several arrays: every piece fills the lanes that it is for.
    out = [np.zeros(group.n, BITS[size]) for _ in range(count)]
    for piece in pieces:
        words, at = piece.data.by_size[size], piece.at >> _SHIFTS[size]
        for k in range(count):
            out[k][piece.lanes] = words.take(at + k)
    return out


def store(
    group: Any, pieces: list[Piece], size: int, values: list[Lanes], how: How = PLAIN
) -> None:
    """Write consecutive words of `size` bytes in each lane; at one address the last lane wins."""
    for piece in pieces:
        words, at = piece.data.by_size[size], piece.at >> _SHIFTS[size]
        chosen = [take(value, piece.lanes) for value in values]
        if piece.shadow is not None:
            piece.shadow.on_write(group, piece, chosen, how)
        for k, value in enumerate(chosen):
            words[at + k if k else at] = value if at.shape[0] > 1 else value[-1:]
