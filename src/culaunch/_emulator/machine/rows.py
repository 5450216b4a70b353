"""Values of a group laid out by warps, one row of 32 for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.types import Lanes


def to_rows(group: Group, value: Lanes) -> Lanes:
    """Return the values as rows of 32, one for each warp; lanes that are not here are zero."""
    # Whole warps need no copy: their lanes lie one after the other already.
    if group.whole_warps:
        return np.broadcast_to(value, (group.n,)).reshape(-1, 32)
    # Otherwise every value goes to its lane's own place, in an array for the whole chunk:
    # scattering once is cheaper than finding out which warps are incomplete.
    out = np.zeros(group.chunk.size, value.dtype)
    out[group.lanes] = value
    return out.reshape(-1, 32)


def from_rows(group: Group, rows: Lanes) -> Lanes:
    """Return the group's values out of rows that `to_rows` shaped."""
    flat = rows.reshape(-1)
    return flat if group.whole_warps else flat[group.lanes]


def from_warps(group: Group, values: Lanes) -> Lanes:
    """Return the value of each lane's warp."""
    return from_rows(group, np.repeat(values, 32))


def pack_flags(rows: Lanes) -> Lanes:
    """Pack rows of 32 flags into a mask for each."""
    return np.packbits(rows, axis=1, bitorder="little").view(np.uint32)[:, 0]


def members(group: Group) -> Lanes:
    """Return, for each lane, the mask of the lanes of its warp that are in the group."""
    if group.whole_warps:
        # One value for all lanes, so results computed from it can also stay single values.
        return np.full(1, 0xFFFFFFFF, np.uint32)
    return from_warps(group, pack_flags(to_rows(group, np.ones(1, bool))))
