"""Make, join and shape the taints of several registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine.rows import from_rows, to_rows
from culaunch._emulator.machine.taint import Taint, Taints

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.types import Lanes


def whole(group: Group, slots: tuple[int, ...], lanes: Lanes, origin: Lanes) -> Taints:
    """Return taints with all bits of `slots` in `lanes`."""
    results = {}
    for slot in slots:
        zero = group.code.zeros[slot]
        bits = np.zeros((group.n, *zero.shape[1:]), zero.dtype)
        bits[lanes] = ~np.zeros(1, zero.dtype)
        results[slot] = Taint(bits, origin)
    return results


def join(first: Taints, second: Taints) -> Taints:
    """Return the bits of both; if both have some, the origin comes from `first`."""
    joined = dict(second)
    for slot, taint in first.items():
        other = second[slot]
        origin = np.where(taint.lanes, taint.origin, other.origin)
        joined[slot] = Taint(taint.bits | other.bits, origin)
    return joined


def by_warp(group: Group, lanes: Lanes, origin: Lanes) -> tuple[Lanes, Lanes]:
    """Return a flag for each warp with a tainted lane, and for each lane an origin in its warp."""
    # Origins count from 0, and zero stands for lanes without one, so add 1. Any origin of the warp
    # will do, and the largest is the easiest to find.
    numbers = to_rows(group, np.where(lanes, origin + 1, 0)).max(axis=1)
    return numbers > 0, from_rows(group, np.repeat(numbers - 1, 32))


def spread(group: Group, copy: Group, slot: int) -> Lanes:
    """Return a register of `copy` with an element for each lane of `group`."""
    value = copy.regs[slot]
    return np.broadcast_to(value, (group.n, *value.shape[1:]))
