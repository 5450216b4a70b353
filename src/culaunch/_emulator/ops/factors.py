"""Factors of matrix products that are read out of shared memory by a descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.fault import ILLEGAL_ADDRESS, ILLEGAL_INSTRUCTION, Fault
from culaunch._emulator.matrix.elements import WIDTHS
from culaunch._emulator.matrix.wgmma import Descriptors, offsets
from culaunch._emulator.memory.bytes import Piece
from culaunch._emulator.ops.bulk_units import each_unit

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.matrix.elements import Elements
    from culaunch._emulator.types import Lanes


def read_factor(
    group: Group,
    at: Descriptors,
    index: Lanes,
    block: Lanes,
    rows: Lanes,
    count: int,
    size: int,
    *,
    transposed: bool,
    reader: str = "wgmma",
    grouped: bool = False,
) -> Elements:
    """Read `count` elements of `size` bytes of each row: (descriptors, rows, count).

    `index` has the position in the group of the thread of each descriptor, and `block` the block of
    the chunk whose shared memory it describes; `reader` is for messages. A `grouped` read ends
    when its warpgroup waits for it.
    """
    wrong = at.problem(count * size, transposed=transposed)
    if wrong:
        raise Fault(ILLEGAL_INSTRUCTION, f"{reader}: {wrong}", lane=group.lane_at(int(index[0])))
    place = offsets(at, rows, np.arange(count), size, transposed=transposed)
    shared = group.chunk.shared
    if int(place.max()) + size > shared.size:
        first = int(np.argmax(place.max(axis=(1, 2))))
        raise Fault(
            ILLEGAL_ADDRESS,
            f"{reader} reads shared address {int(place.max()):#x}: the block has {shared.size} "
            "bytes of shared memory",
            lane=group.lane_at(int(index[first])),
        )
    place = place + block[:, None, None] * shared.stride
    if group.chunk.races is not None:
        _check_races(group, index, place // 4 * 4, grouped=grouped)
    bits: Elements = shared.data.by_size[size][place // size]
    return bits


def tcgen05_descriptors(group: Group, words: Lanes) -> Descriptors:
    """Take matrix descriptors of tcgen05 apart."""
    at = Descriptors.read_tcgen05(words)
    if at is None:
        reason = "a matrix descriptor whose version is not 1, or with a swizzle of 3, 5 or 7"
        raise Fault(ILLEGAL_INSTRUCTION, reason, lane=group.lane_at(0))
    return at


def _check_races(group: Group, index: Lanes, place: Lanes, *, grouped: bool) -> None:
    """Report a race with a read of a factor, in the name of a warp's first lane."""
    shared = group.chunk.shared
    if shared.shadow is None:
        return
    lane = np.repeat(index, place[0].size)
    piece = Piece(None, shared.data, place.reshape(-1).astype(np.int64), shared.shadow)
    records = shared.shadow.records
    races = group.chunk.races
    races.read_factor(each_unit(group, lane), piece, records, 4, grouped=grouped)


def negated(bits: Elements, kind: str) -> Elements:
    """Flip the signs of floats."""
    flipped: Elements = bits ^ bits.dtype.type(1 << (WIDTHS[kind] - 1))
    return flipped
