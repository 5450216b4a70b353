"""Which bytes of a memory are undefined."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culaunch._emulator.memory.bytes import Bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.memory.bytes import Piece
    from culaunch._emulator.memory.scratch import Scratch
    from culaunch._emulator.memory.threads import Threads
    from culaunch._emulator.report import Related
    from culaunch._emulator.types import Lanes

# The end of a message on unwritten bytes, by the memory.
_WRITERS = {"shared": "the block has not", "local": "the thread has not", "global": "nothing has"}


class UndefinedBytes:
    """255 for every byte of a memory that is undefined.

    Parameters
    ----------
    scratch : Scratch
        The memory.
    undefined : bool
        Whether all of it is undefined at first.
    base : int
        The address of its first byte, for messages.
    """

    def __init__(self, scratch: Scratch, *, undefined: bool, base: int = 0) -> None:
        self.scratch = scratch
        self.base = base
        self._fresh = 255 if undefined else 0
        rows: Lanes = np.zeros((scratch.rows, scratch.stride), np.uint8)
        # The padding behind a row counts as defined: no access gets there.
        rows[:, : scratch.size] = self._fresh
        self.map = Bytes(rows.reshape(-1))
        # The origin of each undefined value that was stored; -1 if the byte was never written. This
        # takes eight bytes for each byte of memory, and is created when the first undefined value
        # is stored.
        self.origin: Lanes | None = None

    @property
    def any(self) -> bool:
        """Whether any byte is undefined."""
        return bool(self.map.by_size[1].any())

    def read(self, group: Threads, piece: Piece, size: int) -> Read | None:
        """Return the undefined bytes of a read; None if all are defined."""
        unit = min(size, 8)
        words = self.map.by_size[unit]
        # First by whole words, since nearly every read is defined; byte by byte only then.
        if not any(words.take((piece.at + k) // unit).any() for k in range(0, size, unit)):
            return None
        lanes = group.lanes if piece.lanes is None else group.lanes[piece.lanes]
        at = np.broadcast_to(piece.at, lanes.shape)
        each = self.map.by_size[1][at[:, None] + np.arange(size)]
        hit = np.flatnonzero(each.any(axis=1))
        lanes, at, each = lanes[hit], at[hit], each[hit]
        origin = np.full(lanes.shape, -1, np.int64)
        if self.origin is not None:
            origin = self.origin[at + (each != 0).argmax(axis=1)]
        space = self.scratch.space
        text = f"a {size}-byte read of {space} address {{:#x}}, which {_WRITERS[space]} written"
        return Read(lanes, each, origin, text, self.base + at % self.scratch.stride, space)

    def define(self, piece: Piece, size: int) -> None:
        """Record that a write has defined its bytes."""
        unit = min(size, 8)
        words = self.map.by_size[unit]
        for k in range(0, size, unit):
            words[(piece.at + k) // unit] = 0

    def store(self, at: Lanes, bits: Lanes, origin: Lanes) -> None:
        """Record stored words with undefined bits; a byte is undefined if a bit of it is.

        Parameters
        ----------
        at : numpy.ndarray
            Where the word of each lane is, in bytes.
        bits : numpy.ndarray
            The undefined bits.
        """
        size = bits.dtype.itemsize
        each = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, size)
        where = at[:, None] + np.arange(size)
        self.map.by_size[1][where] = np.where(each != 0, np.uint8(255), np.uint8(0))
        if self.origin is None:
            self.origin = np.full(self.map.by_size[1].shape, -1, np.int64)
        self.origin[where] = np.where(each != 0, origin[:, None], -1)

    def grow(self, stride: int) -> None:
        """Follow the memory, whose rows had `stride` bytes and now have more."""
        shape = (self.scratch.rows, self.scratch.stride)
        old, rows = self.map.by_size[1].reshape(-1, stride), np.zeros(shape, np.uint8)
        rows[:, :stride] = old
        rows[:, stride : self.scratch.size] = self._fresh
        self.map = Bytes(rows.reshape(-1))
        if self.origin is not None:
            kept = np.full(shape, -1, np.int64)
            kept[:, :stride] = self.origin.reshape(-1, stride)
            self.origin = kept.reshape(-1)


class Read(NamedTuple):
    """A read that met undefined bytes, or raced with a write.

    `lanes` are the lanes of the chunk that made the read. `bytes` has 255 for each undefined byte
    of each lane. `origin` is the origin of a lane's first undefined byte, or -1 if it was never
    written. `space` is the memory. `racing` returns the report of a race and its notes, from the
    detail of a lane.
    """

    lanes: Lanes
    bytes: Lanes
    origin: Lanes
    text: str
    detail: Lanes
    space: str = "shared"
    racing: Callable[[int], tuple[str, list[Related], list[str]]] | None = None
