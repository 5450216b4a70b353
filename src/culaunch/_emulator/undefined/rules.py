"""How undefined bits go from the operands of an instruction to its results."""

# All rules have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.liveness import read_slots
from culaunch._emulator.decode.undefined_bits import Flow, Moves
from culaunch._emulator.machine.rows import from_warps
from culaunch._emulator.machine.taint import Taint, Taints
from culaunch._emulator.ptx.syntax import Instruction, Register
from culaunch._emulator.types import Lanes, is_integer
from culaunch._emulator.undefined.memory_rules import MEMORY_RULES
from culaunch._emulator.undefined.move_rules import move_rule, select_rule
from culaunch._emulator.undefined.plan import Plan
from culaunch._emulator.undefined.product_rule import can_multiply, multiply
from culaunch._emulator.undefined.taints import by_warp, spread, whole

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Symbols
    from culaunch._emulator.machine.state import Code, Group
    from culaunch._emulator.undefined.context import Context
    from culaunch._emulator.undefined.plan import Rule


def make_plan(symbols: Symbols, code: Code, instruction: Instruction) -> Plan:
    """Return the facts about an instruction, with its rule."""
    plan = Plan(symbols, code, instruction)
    plan.rule = _find_rule(plan)
    return plan


def _find_rule(plan: Plan) -> Rule:
    flow = plan.flow
    if isinstance(flow, Moves):
        return move_rule(plan, flow) or _compute
    if flow is Flow.SELECTS:
        return select_rule(plan) or _compute
    if flow is Flow.MULTIPLIES:
        return _multiply if can_multiply(plan) else _mix_lanes
    return _RULES[flow]


def _compute(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    """Mark all bits of the results in lanes where an operand has an undefined bit."""
    found = context.lanes(group, plan.reads)
    return {} if found is None else whole(group, plan.writes, *found)


def _mix_lanes(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    found = context.lanes(group, plan.reads)
    if found is None:
        return {}
    # Whichever lane has the undefined operand: every lane of its warp gets a result that depends on
    # it.
    rows, origin = by_warp(group, *found)
    return whole(group, plan.writes, from_warps(group, rows), origin)


def _multiply(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    found = context.lanes(group, plan.reads)
    return {} if found is None else multiply(group, plan, by_warp(group, *found)[1])


def _ignore(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    return {}


def _bitwise(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    """Try all values of the undefined bits: result bits that change are undefined."""
    found = context.lanes(group, plan.reads)
    if found is None:
        return {}
    # All zeros and all ones of each operand are enough, since bits do not mix: at most 2^3 runs.
    slots = [slot for slot in plan.reads if slot in group.undefined]
    first: list[Lanes] = []
    changed: list[Lanes] = []
    for choice in itertools.product((False, True), repeat=len(slots)):
        copy = context.with_bits(group, ())
        for slot, ones in zip(slots, choice, strict=True):
            bits, value = group.undefined[slot].bits, group.regs[slot]
            copy.regs[slot] = value | bits if ones else value & ~bits
        plan.run(copy)
        values = [spread(group, copy, slot) for slot in plan.writes]
        if not first:
            first = values
            changed = [np.zeros_like(value) for value in values]
        changed = [c | (v ^ f) for c, v, f in zip(changed, values, first, strict=True)]
    return {slot: Taint(bits, found[1]) for slot, bits in zip(plan.writes, changed, strict=True)}


def _vote(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    """Mark the votes that change with an undefined predicate, whichever lane's it is."""
    changed = _bitwise(context, group, plan, active)
    found = context.lanes(group, plan.reads)
    if found is None:
        return {}
    lanes = np.logical_or.reduce([taint.bits != 0 for taint in changed.values()])
    return whole(group, plan.writes, lanes, by_warp(group, *found)[1])


def _compare(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    operands, mods = plan.plain.operands, plan.plain.mods
    found = context.lanes(group, read_slots(operands[1:3]))
    # Two values that differ in a defined bit are unequal, regardless of their other bits.
    if found is not None and mods[0] in ("eq", "ne") and _is_plain_integer(mods):
        found = (found[0] & ~_differ(context, group, plan), found[1])
    if len(operands) > 3:
        other = context.lanes(group, read_slots(operands[3:4]))
        value = plan.decoder.read(operands[3], "pred")(group)
        # setp may combine the comparison with a predicate (PTX ISA, "setp"). `and` with false is
        # false, and `or` with true is true, for any comparison.
        if found is not None and "xor" not in mods:
            # A defined operand of `and` or `or` may decide the result.
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
    return {} if found is None else whole(group, plan.writes, *found)


def _differ(context: Context, group: Group, plan: Plan) -> Lanes:
    """Tell where defined bits of the first two operands differ, so the values certainly differ."""
    kind = plan.decoder.type(plan.instruction)
    operands = plan.plain.operands[1:3]
    shown = context.with_bits(group, plan.reads)
    values, unknown = [], []
    for operand in operands:
        read = plan.decoder.read(operand, kind)
        values.append(read(group))
        if isinstance(operand, Register):
            unknown.append(read(shown))
    # The bits that differ and are defined in both values.
    defined = values[0] ^ values[1]
    for bits in unknown:
        defined = defined & ~bits
    differ: Lanes = np.broadcast_to(defined != 0, (group.n,))
    return differ


def _is_plain_integer(mods: tuple[str, ...]) -> bool:
    # Floats are equal with different bits (the two zeros), and unequal with the same ones (NaN).
    return is_integer(mods[-1]) and {"cc", "wide", "hi", "sat"}.isdisjoint(mods)


_RULES: dict[Flow, Rule] = {
    Flow.COMPUTES: _compute,
    Flow.BITWISE: _bitwise,
    Flow.COMPARES: _compare,
    Flow.VOTES: _vote,
    Flow.MIXES_LANES: _mix_lanes,
    Flow.IGNORES: _ignore,
    **MEMORY_RULES,
}
