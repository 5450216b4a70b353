"""The observers of accesses to a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.races import Races
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.memory.bytes import Piece
    from culaunch._emulator.memory.scratch import Scratch
    from culaunch._emulator.memory.undefined_bytes import UndefinedBytes
    from culaunch._emulator.types import Lanes

__all__ = ["Shadow"]


class Shadow:
    """The facts about each byte of a memory.

    An access is ``"plain"``, ``"strong"`` (volatile, relaxed, acquire, release) or ``"async"``
    (cp.async).

    Attributes
    ----------
    undefined : UndefinedBytes or None
        Bytes that are unwritten, or were written with an undefined value; None if there are none.
    races : Races or None
        The accesses by thread, if races are checked.
    """

    def __init__(
        self,
        chunk: Chunk,
        scratch: Scratch,
        undefined: UndefinedBytes | None = None,
        races: Races | None = None,
    ) -> None:
        self.chunk = chunk
        self.scratch = scratch
        self.undefined = undefined
        self.races = races

    def on_read(self, group: Group, piece: Piece, size: int, how: str) -> None:
        """Record a read."""
        self._read_undefined(group, piece, size)
        if self.races is not None:
            self.races.read(group, piece, size, strong=how == "strong")

    def on_write(self, group: Group, piece: Piece, values: list[Lanes], how: str) -> None:
        """Record a write of consecutive words, before it happens."""
        # If the written value is undefined, the rules of undefined bits mark it afterwards.
        size = values[0].dtype.itemsize
        if self.undefined is not None:
            self.undefined.define(piece, size * len(values))
        if self.races is not None:
            # Races compare bytes with memory. A value that is the same for all lanes is expanded to
            # one row of bytes per lane.
            count = group.n if piece.lanes is None else piece.lanes.shape[0]
            words = np.stack([np.broadcast_to(value, (count,)) for value in values], axis=1)
            each = np.ascontiguousarray(words).view(np.uint8)
            self.races.write(group, piece, size * len(values), each, how=how)

    def on_atomic(self, group: Group, piece: Piece, size: int, *, replaces: bool) -> None:
        """Record a read-modify-write; `replaces` if it writes a different value than it read."""
        self._read_undefined(group, piece, size)
        # An addition to an undefined word stays undefined; an exchange ignores the old value.
        if replaces and self.undefined is not None:
            self.undefined.define(piece, size)
        if self.races is not None:
            self.races.update(group, piece, size)

    def on_barrier(self, done: Lanes | None) -> None:
        """Start a new interval in the blocks `done`, or in all of them."""
        if self.undefined is not None and not self.undefined.any:
            # Everything is defined, so there is nothing left to find.
            self.undefined = None
        if self.races is not None:
            self.races.barrier(done)

    def grow(self, stride: int) -> None:
        """Follow a memory that has got larger rows than `stride`."""
        if self.undefined is not None:
            self.undefined.grow(stride)

    def _read_undefined(self, group: Group, piece: Piece, size: int) -> None:
        if self.undefined is not None:
            read = self.undefined.read(group, piece, size)
            if read is not None:
                self.chunk.undefined_reads.append(read)
