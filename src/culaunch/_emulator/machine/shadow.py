"""The observers of accesses to a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.machine.records import Records
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.machine.zones import Zones
    from culaunch._emulator.memory.bytes import Piece
    from culaunch._emulator.memory.how import How
    from culaunch._emulator.memory.undefined_bytes import UndefinedBytes
    from culaunch._emulator.types import Lanes


class Shadow:
    """The facts about each byte of a memory.

    Attributes
    ----------
    undefined : UndefinedBytes or None
        Bytes that are unwritten, or were written with an undefined value; None if there are none.
    records : Records or None
        The accesses by thread, if races are checked.
    zones : Zones or None
        The bytes between variables, if there are any.
    """

    def __init__(
        self,
        undefined: UndefinedBytes | None = None,
        records: Records | None = None,
        zones: Zones | None = None,
    ) -> None:
        self.undefined = undefined
        self.records = records
        self.zones = zones

    def on_read(self, group: Group, piece: Piece, size: int, how: How) -> None:
        """Record a read."""
        if self.zones is not None:
            self.zones.check(group, piece, size, "read")
        self._read_undefined(group, piece, size)
        if self.records is not None:
            group.chunk.races.read(group, piece, self.records, size, how)

    def on_write(self, group: Group, piece: Piece, values: list[Lanes], how: How) -> None:
        """Record a write of consecutive words, before it happens."""
        # If the written value is undefined, the rules of undefined bits mark it afterwards.
        size = values[0].dtype.itemsize
        if self.zones is not None:
            self.zones.check(group, piece, size * len(values), "write")
        if self.undefined is not None:
            self.undefined.define(piece, size * len(values))
        if self.records is not None:
            # Races compare bytes with memory. A value that is the same for all lanes is expanded to
            # one row of bytes per lane.
            count = group.n if piece.lanes is None else piece.lanes.shape[0]
            words = np.stack([np.broadcast_to(value, (count,)) for value in values], axis=1)
            each = np.ascontiguousarray(words).view(np.uint8)
            group.chunk.races.write(group, piece, self.records, size * len(values), each, how)

    def on_atomic(self, group: Group, piece: Piece, size: int, how: How, *, replaces: bool) -> None:
        """Record a read-modify-write; `replaces` if it writes a different value than it read."""
        if self.zones is not None:
            self.zones.check(group, piece, size, "atomic access")
        self._read_undefined(group, piece, size)
        # An addition to an undefined word stays undefined; an exchange ignores the old value.
        if replaces and self.undefined is not None:
            self.undefined.define(piece, size)
        if self.records is not None:
            group.chunk.races.update(group, piece, self.records, size, how)

    def on_barrier(self) -> None:
        """Forget the undefined bytes if there are no more."""
        if self.undefined is not None and not self.undefined.any:
            # Everything is defined, so there is nothing left to find.
            self.undefined = None

    def grow(self, stride: int) -> None:
        """Follow a memory that has got larger rows than `stride`."""
        if self.undefined is not None:
            self.undefined.grow(stride)

    def _read_undefined(self, group: Group, piece: Piece, size: int) -> None:
        if self.undefined is not None:
            read = self.undefined.read(group, piece, size)
            if read is not None:
                group.chunk.undefined_reads.append(read)
