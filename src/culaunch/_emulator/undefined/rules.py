"""How undefined bits go from the operands of an instruction to its results."""

# All rules have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.liveness import read_slots
from culaunch._emulator.decode.operation import decode
from culaunch._emulator.machine.rows import from_rows, from_warps, to_rows
from culaunch._emulator.machine.taint import Taint, Taints
from culaunch._emulator.ptx.syntax import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    Vector,
)
from culaunch._emulator.types import Lanes, is_type
from culaunch._emulator.undefined.memory_rules import MEMORY_RULES
from culaunch._emulator.undefined.plan import Plan
from culaunch._emulator.undefined.product_rule import can_multiply, multiply

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Symbols
    from culaunch._emulator.machine.state import Code, Group
    from culaunch._emulator.undefined.context import Context
    from culaunch._emulator.undefined.plan import Rule

__all__ = ["make_plan"]

# Instructions that move bits, with the operands that say where to; the rest are moved.
_MOVES: dict[str, tuple[int, ...]] = {
    "mov": (),
    "shfl": (2, 3, 4),
    "prmt": (3,),
    "shl": (2,),
    "shr": (2,),
    "shf": (3,),
    "bfe": (2, 3),
    "bfi": (3, 4),
    "brev": (),
    "movmatrix": (),
}
# Every bit of the result depends on the same bit of the operands alone.
_BITWISE = ("and", "or", "xor", "not", "lop3", "vote")
_WHOLE_WARP = ("match", "redux", "mma", "elect", "vote", "wmma")


def make_plan(symbols: Symbols, code: Code, instruction: Instruction) -> Plan:
    """Return what is known of an instruction, with its rule."""
    plan = Plan(symbols, code, instruction)
    plan.rule = _find_rule(plan)
    return plan


def _find_rule(plan: Plan) -> Rule:
    instruction = plan.instruction
    name, mods = instruction.name, instruction.mods
    if name in ("ld", "st") and _is_slot(instruction):
        return _move(plan, ())
    memory = MEMORY_RULES.get(name)
    if memory is not None and not (name == "wmma" and mods[0] == "mma"):
        return memory
    if name in _MOVES:
        return _move(plan, _MOVES[name])
    if name == "cvt" and _between_integers(mods):
        return _move(plan, ())
    if name == "selp":
        return _select(plan)
    if name in _BITWISE and "uni" not in mods:
        return _bitwise
    if name == "setp":
        return _compare
    if name in ("mma", "wmma") and can_multiply(plan):
        return _product
    if name in _WHOLE_WARP:
        return _whole_warp
    return _nothing if definition(instruction).effects else _all


def _all(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    """Mark all bits of the results where an operand has an undefined one."""
    found = context.lanes(group, plan.reads)
    return {} if found is None else _whole(group, plan.writes, *found)


def _whole_warp(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    found = context.lanes(group, plan.reads)
    if found is None:
        return {}
    rows, origin = _by_warp(group, *found)
    return _whole(group, plan.writes, from_warps(group, rows), origin)


def _product(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    found = context.lanes(group, plan.reads)
    return {} if found is None else multiply(group, plan, _by_warp(group, *found)[1])


def _nothing(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    return {}


def _move(plan: Plan, controls: tuple[int, ...]) -> Rule:
    """Run the instruction on the undefined bits themselves."""
    moved = plan.plain
    control_slots = frozenset(
        read_slots(moved.operands[i] for i in controls if i < len(moved.operands))
    )
    data_slots = plan.reads - control_slots
    data = [op for i, op in enumerate(moved.operands) if i and i not in controls]
    if not control_slots.isdisjoint(read_slots(data)):
        return _all
    first = 1 if moved.name != "st" else 0
    operands = tuple(
        operand if i < first or i in controls else _without_constants(operand)
        for i, operand in enumerate(moved.operands)
    )
    shadow = decode(plan.decoder, Instruction(moved.name, moved.mods, operands, moved.line))
    writes = plan.writes[:1] if isinstance(moved.operands[0], Pair) else plan.writes

    def rule(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
        found, control = context.lanes(group, data_slots), context.lanes(group, control_slots)
        results = {}
        if found is not None:
            origin = found[1]
            copy = context.with_bits(group, data_slots)
            shadow(copy)
            if moved.name == "shfl":
                origin = _shuffled(context, group, plan, shadow, origin)
            results = {slot: Taint(_spread(group, copy, slot), origin) for slot in writes}
        if control is not None:
            return _join(results, _whole(group, plan.writes, *control))
        return results

    return rule


def _shuffled(
    context: Context, group: Group, plan: Plan, shadow: Callable[[Group], None], origin: Lanes
) -> Lanes:
    """Send the origins the way of the values, half by half."""
    value = plan.plain.operands[1]
    assert isinstance(value, Register)
    halves = []
    for shift in (0, 32):
        copy = context.with_bits(group, ())
        copy.regs[value.slot] = (origin >> shift & 0xFFFFFFFF).astype(np.uint32)
        shadow(copy)
        halves.append(_spread(group, copy, plan.writes[0]).astype(np.int64))
    return halves[0] | halves[1] << 32


def _bitwise(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    """Try all values of the undefined bits: what changes is undefined."""
    found = context.lanes(group, plan.reads)
    if found is None:
        return {}
    slots = [slot for slot in plan.reads if slot in group.undefined]
    first: list[Lanes] = []
    changed: list[Lanes] = []
    for choice in itertools.product((False, True), repeat=len(slots)):
        copy = context.with_bits(group, ())
        for slot, ones in zip(slots, choice, strict=True):
            bits, value = group.undefined[slot].bits, group.regs[slot]
            copy.regs[slot] = value | bits if ones else value & ~bits
        plan.run(copy)
        values = [_spread(group, copy, slot) for slot in plan.writes]
        if not first:
            first = values
            changed = [np.zeros_like(value) for value in values]
        changed = [c | (v ^ f) for c, v, f in zip(changed, values, first, strict=True)]
    origin = found[1]
    if plan.instruction.name == "vote":
        lanes = np.logical_or.reduce([bits != 0 for bits in changed])
        return _whole(group, plan.writes, lanes, _by_warp(group, *found)[1])
    return {slot: Taint(bits, origin) for slot, bits in zip(plan.writes, changed, strict=True)}


def _select(plan: Plan) -> Rule:
    """Take the chosen operand's bits; where the choice is undefined and matters, all are."""
    move = _move(plan, (3,))
    choice = frozenset(read_slots(plan.plain.operands[3:4]))

    def rule(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
        doubt = context.lanes(group, choice)
        results = move(context, group, plan, active)
        if doubt is None:
            return results
        (slot,), (out,) = choice, plan.writes
        values, bits = [], np.zeros((group.n, *plan.code.zeros[out].shape[1:]), bool)
        bits = bits.astype(plan.code.zeros[out].dtype)
        for chosen in (False, True):
            copy = context.with_bits(group, ())
            copy.regs[slot] = np.array([chosen])
            copy.undefined = {s: t for s, t in group.undefined.items() if s != slot}
            taint = move(context, copy, plan, active).get(out)
            bits = bits if taint is None else bits | taint.bits
            plan.run(copy)
            values.append(_spread(group, copy, out))
        differ = (bits | (values[0] ^ values[1])) != 0
        either = _whole(group, (out,), differ.reshape(group.n, -1).any(axis=1), doubt[1])[out].bits
        known = results[out]
        data = context.lanes(group, plan.reads - choice)
        origin = doubt[1] if data is None else np.where(doubt[0], doubt[1], data[1])
        # What `move` has marked where the choice is undefined is all: take less.
        return {out: Taint(np.where(doubt[0], either, known.bits), origin)}

    return rule


def _compare(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    operands, mods = plan.plain.operands, plan.plain.mods
    found = context.lanes(group, read_slots(operands[1:3]))
    if found is not None and mods[0] in ("eq", "ne") and _is_plain_integer(mods):
        found = (found[0] & ~_differ(context, group, plan), found[1])
    if len(operands) > 3:
        other = context.lanes(group, read_slots(operands[3:4]))
        value = plan.decoder.read(operands[3], "pred")(group)
        if found is not None and "xor" not in mods:
            # A defined operand of `and` or `or` may decide alone.
            open_ = value if "and" in mods else ~value
            open_ = open_ if other is None else open_ | other[0]
            found = (found[0] & open_, found[1])
        if other is not None:
            found = (
                other
                if found is None
                else (
                    found[0] | other[0],
                    np.where(found[0], found[1], other[1]),
                )
            )
    return {} if found is None else _whole(group, plan.writes, *found)


def _differ(context: Context, group: Group, plan: Plan) -> Lanes:
    """Tell where the defined bits of the first two operands differ, so that these do."""
    kind = plan.decoder.type(plan.instruction)
    operands = plan.plain.operands[1:3]
    shown = context.with_bits(group, plan.reads)
    values, unknown = [], []
    for operand in operands:
        read = plan.decoder.read(operand, kind)
        values.append(read(group))
        if isinstance(operand, Register):
            unknown.append(read(shown))
    defined = values[0] ^ values[1]
    for bits in unknown:
        defined = defined & ~bits
    differ: Lanes = np.broadcast_to(defined != 0, (group.n,))
    return differ


# -- parts


def _whole(group: Group, slots: tuple[int, ...], lanes: Lanes, origin: Lanes) -> Taints:
    """Return taints with all bits of `slots` in `lanes`."""
    results = {}
    for slot in slots:
        zero = group.code.zeros[slot]
        shape = (group.n, *zero.shape[1:])
        bits = np.zeros(shape, zero.dtype)
        bits[lanes] = ~np.zeros(1, zero.dtype)
        results[slot] = Taint(bits, origin)
    return results


def _join(first: Taints, second: Taints) -> Taints:
    joined = dict(second)
    for slot, taint in first.items():
        other = second[slot]
        origin = np.where(taint.lanes, taint.origin, other.origin)
        joined[slot] = Taint(taint.bits | other.bits, origin)
    return joined


def _by_warp(group: Group, lanes: Lanes, origin: Lanes) -> tuple[Lanes, Lanes]:
    """Return a flag for each warp with such a lane, and for each lane an origin of its warp's."""
    numbers = to_rows(group, np.where(lanes, origin + 1, 0)).max(axis=1)
    return numbers > 0, from_rows(group, np.repeat(numbers - 1, 32))


def _spread(group: Group, copy: Group, slot: int) -> Lanes:
    value = copy.regs[slot]
    return np.broadcast_to(value, (group.n, *value.shape[1:]))


def _without_constants(operand: Operand) -> Operand:
    """Return an operand whose constants, all defined, are zero."""
    if isinstance(operand, Immediate | Special | Symbol):
        return Immediate(0)
    if isinstance(operand, Negated):
        return _without_constants(operand.operand)
    if isinstance(operand, Vector):
        return Vector(tuple(_without_constants(item) for item in operand.items))
    return operand


def _is_slot(instruction: Instruction) -> bool:
    place = instruction.operands[0 if instruction.name == "st" else 1]
    base = place.base if isinstance(place, Address) else None
    return isinstance(base, Register) and base.type == "param"


def _between_integers(mods: tuple[str, ...]) -> bool:
    types = [word for word in mods if is_type(word)]
    return len(types) == 2 == len(mods) and all(
        word[0] in "sub" and word[1:].isdigit() for word in types
    )


def _is_plain_integer(mods: tuple[str, ...]) -> bool:
    kind = mods[-1]
    return kind[0] in "sub" and kind[1:].isdigit() and {"cc", "wide", "hi", "sat"}.isdisjoint(mods)
