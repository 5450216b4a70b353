"""Accesses of two threads to the same shared memory that nothing orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator._fault import LAUNCH_FAILED, Fault

if TYPE_CHECKING:
    from culaunch._emulator._memory._bytes import Piece
    from culaunch._emulator._simt._chunk import Chunk
    from culaunch._emulator._simt._group import Group
    from culaunch._emulator._types import Lanes

__all__ = ["Races"]

_NOBODY = -1
_MANY = -2


class Races:
    """The last writer, and the readers, of every byte since the block's last barrier."""

    def __init__(self, chunk: Chunk) -> None:
        length = chunk.shared.array.shape[0]
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
