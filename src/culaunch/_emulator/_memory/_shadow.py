"""What is known of each byte of shared memory: written or not, and by whom since the barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator._fault import LAUNCH_FAILED, Fault
from culaunch._emulator._memory._bytes import Bytes, Piece

if TYPE_CHECKING:
    from culaunch._emulator._simt._chunk import Chunk
    from culaunch._emulator._simt._group import Group
    from culaunch._emulator._types import Lanes

__all__ = ["SharedShadow"]

_NOBODY = -1
_MANY = -2


class SharedShadow:
    """Watches the shared memory of a chunk."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.shared = chunk.shared
        length = self.shared.array.shape[0]
        # 255 where written: a word is initialised if all its bits are ones.
        self.written = (
            Bytes(np.zeros(length, np.uint8)) if chunk.options.check_uninitialized else None
        )
        self.races = _Races(chunk, length) if chunk.options.check_races else None

    def on_read(self, group: Group, piece: Piece, size: int) -> None:
        """Check a read."""
        if self.written is not None:
            self._check_written(group, piece, size)
        if self.races is not None:
            self.races.read(group, piece, size)

    def on_write(self, group: Group, piece: Piece, size: int) -> None:
        """Take note of a write."""
        if self.written is not None:
            for unit, at in _units(piece.at, size):
                words = self.written.by_size[unit]
                words[at] = words.dtype.type(-1 & ((1 << 8 * unit) - 1))
        if self.races is not None:
            self.races.write(group, piece, size)

    def on_atomic(self, group: Group, piece: Piece, size: int) -> None:
        """Check a read-modify-write: atomic ones do not race with each other."""
        if self.written is not None:
            self._check_written(group, piece, size)

    def on_barrier(self, done: Lanes | None) -> None:
        """Start a new interval in the blocks `done`, or in all of them."""
        if self.written is not None and self.written.by_size[1].all():
            # Everything is initialised: there is nothing left to find.
            self.written = None
        if self.races is not None:
            self.races.barrier(done)

    def _check_written(self, group: Group, piece: Piece, size: int) -> None:
        assert self.written is not None
        for unit, at in _units(piece.at, size):
            words = self.written.by_size[unit].take(at)
            if int(words.min()) == (1 << 8 * unit) - 1:
                continue
            index = int(np.flatnonzero(words != (1 << 8 * unit) - 1)[0])
            lane = index if piece.lanes is None else int(piece.lanes[index])
            offset = int(piece.at[index]) % self.shared.stride
            raise Fault(
                LAUNCH_FAILED,
                f"{size}-byte read of shared address {offset:#x}, which the block has not written",
                lane=group.lane_at(lane),
                notes=[
                    "(harmless only if the value is not used: check_uninitialized turns it off)"
                ],
            )


class _Races:
    """The last writer, and the readers, of every byte since the block's last barrier."""

    def __init__(self, chunk: Chunk, length: int) -> None:
        self.chunk = chunk
        self.writer: Lanes = np.full(length, _NOBODY, np.int32)
        self.reader: Lanes = np.full(length, _NOBODY, np.int32)

    def read(self, group: Group, piece: Piece, size: int) -> None:
        lanes, at = _expand(group, piece, size)
        writer = self.writer[at]
        self._report(writer, lanes, at, "reads", "wrote")
        reader = self.reader[at]
        self.reader[at] = np.where((reader == _NOBODY) | (reader == lanes), lanes, _MANY)
        # Several lanes of this access may read the same byte: the last of them is stored.
        shared = self.reader[at] != lanes
        self.reader[at[shared]] = _MANY

    def write(self, group: Group, piece: Piece, size: int) -> None:
        lanes, at = _expand(group, piece, size)
        self._report(self.writer[at], lanes, at, "writes", "wrote")
        reader = self.reader[at]
        self._report(np.where(reader == _MANY, _MANY, reader), lanes, at, "writes", "read")
        self.writer[at] = lanes
        self._report(self.writer[at], lanes, at, "writes", "wrote")

    def barrier(self, done: Lanes | None) -> None:
        if done is None:
            self.writer[:] = _NOBODY
            self.reader[:] = _NOBODY
            return
        stride = self.chunk.shared.stride
        self.writer.reshape(-1, stride)[done] = _NOBODY
        self.reader.reshape(-1, stride)[done] = _NOBODY

    def _report(self, other: Lanes, lanes: Lanes, at: Lanes, does: str, did: str) -> None:
        # Lanes of a warp have instructions and barriers of their own to order them.
        conflict = (other == _MANY) | ((other >= 0) & (other // 32 != lanes // 32))
        if not conflict.any():
            return
        index = int(np.flatnonzero(conflict)[0])
        lane, first = int(lanes[index]), int(other[index])
        offset = int(at[index]) % self.chunk.shared.stride
        who = "several threads" if first < 0 else f"thread {self.chunk.place(first)[1]}"
        raise Fault(
            LAUNCH_FAILED,
            f"race: a thread {does} shared address {offset:#x}, which {who} {did} with no "
            "barrier in between",
            lane=lane,
        )


def _expand(group: Group, piece: Piece, size: int) -> tuple[Lanes, Lanes]:
    """Return a lane and an offset for every byte of an access."""
    lanes = group.lanes if piece.lanes is None else group.lanes[piece.lanes]
    at = np.broadcast_to(piece.at, lanes.shape)
    each = (at[:, None] + np.arange(size)).reshape(-1)
    return np.repeat(lanes, size).astype(np.int32), each


def _units(at: Lanes, size: int) -> list[tuple[int, Lanes]]:
    """Cut an access into words of at most eight bytes: their size and their indices."""
    unit = min(size, 8)
    return [(unit, (at + k) // unit) for k in range(0, size, unit)]
