"""Bring groups back together that are at the same place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine import taint
from culaunch._emulator.machine.state import Group
from culaunch._emulator.machine.taint import NONE

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Code
    from culaunch._emulator.machine.taint import Taints
    from culaunch._emulator.types import Lanes


def merge(parts: list[Group]) -> Group:
    """Join groups that are at the same place into one, lanes in ascending order."""
    first = parts[0]
    if len(parts) == 1:
        return first
    lanes = np.concatenate([part.lanes for part in parts])
    # Other code relies on the ascending order. Lane i of a full group is at index i. Whole warps
    # are in rows of 32. Of several writes to an address, the last lane's value stays.
    order = np.argsort(lanes, kind="stable")
    sizes = [part.n for part in parts]
    regs = _merge_registers(first.code, first.block, [part.regs for part in parts], sizes, order)
    frames = []
    for depth, frame in enumerate(first.frames):
        # Groups with the same key are in the same calls, frame by frame, and therefore have the
        # same local base. Each keeps its own values in the frames.
        kept = [part.frames[depth].regs for part in parts]
        merged = _merge_registers(frame.code, frame.block, kept, sizes, order)
        taints = [part.frames[depth].undefined for part in parts]
        undefined = _merge_taints(frame.code, frame.block, taints, sizes, order)
        frames.append(frame._replace(regs=merged, undefined=undefined))
    out = Group(first.chunk, lanes[order], first.code, regs, first.block, frames, first.local_base)
    taints = [part.undefined for part in parts]
    # A register that is undefined in one part only is so for those lanes of the whole.
    out.undefined = _merge_taints(first.code, first.block, taints, sizes, order)
    # A new group at this place gives the waiting groups their turn again.
    newest = min(parts, key=lambda part: part.spin)
    out.spin, out.spin_end = newest.spin, newest.spin_end
    return out


def _merge_taints(
    code: Code, block: int, taints: list[Taints], sizes: list[int], order: Lanes
) -> Taints:
    if not any(taints):
        return NONE
    return taint.merge(taints, sizes, order, code.blocks[block].live_in)


def _merge_registers(
    code: Code, block: int, files: list[list[Lanes]], sizes: list[int], order: Lanes
) -> list[Lanes]:
    regs = list(code.zeros)
    for slot in code.blocks[block].live_in:
        values = [file[slot] for file in files]
        first = values[0]
        # One value for all lanes stays one if possible, because computing with it costs as much for
        # one lane as for all. Usually it is the same array object, which is quick to check.
        if all(value is first for value in values) and first.shape[0] == 1:
            regs[slot] = first
            continue
        if all(value.shape[0] == 1 for value in values):
            # By their bytes: a NaN equals nothing, and the two zeros are equal.
            same = all(value.tobytes() == first.tobytes() for value in values)
            if same:
                regs[slot] = first
                continue
        # A register that is uniform in each part, with another value in each, has to be written
        # out.
        spread = [
            value if value.shape[0] == size else np.broadcast_to(value, (size, *value.shape[1:]))
            for value, size in zip(values, sizes, strict=True)
        ]
        regs[slot] = np.concatenate(spread)[order]
    return regs
