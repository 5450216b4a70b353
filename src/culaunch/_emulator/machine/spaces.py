"""Turn the addresses of an access into places in memory, for each state space.

An access of many lanes may end up in several arrays: of different ranges of global memory, or with
a generic address in different state spaces. Each of them is a piece.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.fault import ILLEGAL_ADDRESS, Fault
from culaunch._emulator.memory.bytes import Piece
from culaunch._emulator.memory.windows import LOCAL, PARAM, SHARED, WINDOW_SHIFT
from culaunch._emulator.types import Lanes

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group

# (group, addresses, bytes, "read" or "write") -> pieces
Locator = Callable[["Group", Lanes, int, str], list[Piece]]

# A generic address above the host's says its window in the upper bits and the offset in these.
_OFFSET_MASK = np.uint64((1 << WINDOW_SHIFT) - 1)


def _global(group: Group, address: Lanes, size: int, verb: str) -> list[Piece]:
    # PTX takes an address from a register of 32 bits, too; ranges are of 64.
    if address.dtype.itemsize < 8:
        address = address.astype(np.uint64)
    _observe(group, "global", address, size, verb)
    pieces = group.chunk.globals.locate(group, address, size, verb)
    # An access outside of every range is the greater fault, and is reported first.
    if group.chunk.read_only is not None and verb != "read":
        group.chunk.read_only.check(group, address, size, verb)
    return pieces


def _observe(group: Group, space: str, address: Lanes, size: int, verb: str) -> None:
    observer = group.chunk.options.observer
    if observer is not None:
        observer.access(group, space, address, size, verb)


def _shared(group: Group, address: Lanes, size: int, verb: str) -> list[Piece]:
    _observe(group, "shared", address, size, verb)
    return group.chunk.shared.locate(group, group.block_index, address, size, verb)


def _local(group: Group, address: Lanes, size: int, verb: str) -> list[Piece]:
    _observe(group, "local", address, size, verb)
    return group.chunk.local.locate(group, group.lanes, address, size, verb)


def _param(group: Group, address: Lanes, size: int, verb: str) -> list[Piece]:
    return group.chunk.params.locate(group, group.block_index, address, size, verb)


_WINDOWS = {0: _global, SHARED >> WINDOW_SHIFT: _shared, LOCAL >> WINDOW_SHIFT: _local}
_WINDOWS[PARAM >> WINDOW_SHIFT] = _param


def _generic(group: Group, address: Lanes, size: int, verb: str) -> list[Piece]:
    if address.dtype.itemsize < 8:
        address = address.astype(np.uint64)
    # Nearly always all lanes are in one state space: the extremes tell.
    low, high = int(address.min()) >> WINDOW_SHIFT, int(address.max()) >> WINDOW_SHIFT
    if low == high:
        return _in_window(group, low, address, size, verb)
    window = address >> np.uint64(WINDOW_SHIFT)
    pieces = []
    for which in np.unique(window):
        lanes = np.flatnonzero(window == which)
        # A locator finds block and thread by the group. For the lanes of one window it gets a group
        # of only those lanes, without registers, which it does not read.
        part = group.narrow(lanes)
        for piece in _in_window(part, int(which), address[lanes], size, verb):
            # The lanes of a piece are those of the part: here they are the group's again.
            inner = lanes if piece.lanes is None else lanes[piece.lanes]
            at = np.broadcast_to(piece.at, inner.shape)
            pieces.append(Piece(inner, piece.data, at, piece.shadow))
    return pieces


def _in_window(group: Group, window: int, address: Lanes, size: int, verb: str) -> list[Piece]:
    locator = _WINDOWS.get(window)
    if locator is None:
        raise Fault(
            ILLEGAL_ADDRESS,
            f"{size}-byte {verb} of generic address {int(address[0]):#x}, which is in no state "
            "space",
            lane=group.lane_at(0),
        )
    return locator(group, address & _OFFSET_MASK if window else address, size, verb)


LOCATORS: dict[str, Locator] = {
    "": _generic,
    "global": _global,
    "const": _global,
    "shared": _shared,
    "local": _local,
    "param": _param,
}
