"""Which elements of a matrix product depend on undefined ones of its factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.liveness import read_slots
from culaunch._emulator.machine.taint import Taint
from culaunch._emulator.ops.matrix import ELEMENT_TYPES

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.machine.taint import Taints
    from culaunch._emulator.types import Lanes
    from culaunch._emulator.undefined.plan import Plan

# Bits of an element, and the element that is one.
_ONES = {
    "f16": (16, 0x3C00),
    "bf16": (16, 0x3F80),
    "tf32": (32, 0x3F800000),
    "f32": (32, 0x3F800000),
    "f64": (64, 0x3FF0000000000000),
    "s32": (32, 1),
    "s8": (8, 1),
    "u8": (8, 1),
    "s4": (4, 1),
    "u4": (4, 1),
    "e4m3": (8, 0x38),
    "e5m2": (8, 0x3C),
}


def can_multiply(plan: Plan) -> bool:
    """Tell whether `multiply` knows the types and each register is in one factor only."""
    # Otherwise every element counts as depending on every operand, which may report too much.
    if not set(_types(plan)) <= _ONES.keys():
        return False
    parts = [read_slots((operand,)) for operand in plan.plain.operands[1:4]]
    return len(set().union(*parts)) == sum(len(part) for part in parts)


def multiply(group: Group, plan: Plan, origin: Lanes) -> Taints:
    """Multiply matrices with ones at undefined elements and zeros elsewhere.

    A nonzero element of the product with a matrix of ones depends on an undefined element.
    """
    result, *types = _types(plan)
    factors = [read_slots((operand,)) for operand in plan.plain.operands[1:4]]
    depends: dict[int, Lanes] = {}
    # One factor at a time: zero times anything is zero, and two factors at once could hide each
    # other.
    for i, slots in enumerate(factors):
        if group.undefined.keys().isdisjoint(slots):
            continue
        copy = group.with_registers(list(group.regs))
        for j, others in enumerate(factors):
            for slot in others:
                dtype = plan.code.zeros[slot].dtype
                # With an undefined factor the other factor is all ones and the sum starts at zero;
                # an undefined sum is added to a product of zeros.
                every = ~np.zeros(1, dtype) if j < 2 and i < 2 else np.zeros(1, dtype)
                taint = group.undefined.get(slot)
                if j == i:
                    every = np.zeros(1, dtype) if taint is None else taint.bits
                copy.regs[slot] = _ones(every, types[j])
        plan.run(copy)
        for slot in plan.writes:
            found = np.broadcast_to(copy.regs[slot], (group.n,))
            depends[slot] = depends[slot] | found if slot in depends else found
    return {slot: Taint(_filled(bits, result), origin) for slot, bits in depends.items()}


def _types(plan: Plan) -> list[str]:
    named = [word for word in plan.plain.mods if word in ELEMENT_TYPES]
    # Products of f16 name only the types of D and C in wmma.
    return named if len(named) == 4 else [named[0], "f16", "f16", named[-1]]


def _ones(bits: Lanes, kind: str) -> Lanes:
    """Return a one for each element with a bit."""
    width, one = _ONES[kind]
    if width == 4:
        # Elements of four bits have no NumPy type: the four bits of each are gathered in its
        # lowest.
        some = bits | bits >> 1 | bits >> 2 | bits >> 3
        nibbles: Lanes = some & bits.dtype.type(0x11111111)
        return nibbles
    elements = np.ascontiguousarray(bits).view(f"u{width // 8}")
    zero = elements.dtype.type(0)
    return np.asarray(np.where(elements != 0, elements.dtype.type(one), zero).view(bits.dtype))


def _filled(bits: Lanes, kind: str) -> Lanes:
    """Return elements that are one where any bit is set."""
    elements = np.ascontiguousarray(bits).view(f"u{_ONES[kind][0] // 8}")
    zero = elements.dtype.type(0)
    return np.asarray(np.where(elements != 0, ~zero, zero).view(bits.dtype))
