"""Instructions that move bits, and those that choose between two operands."""

# All rules have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.liveness import read_slots
from culaunch._emulator.decode.operation import decode
from culaunch._emulator.decode.undefined_bits import Moves
from culaunch._emulator.machine.taint import Taint, Taints
from culaunch._emulator.ptx.syntax import (
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
from culaunch._emulator.undefined.taints import join, spread, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.types import Lanes
    from culaunch._emulator.undefined.context import Context
    from culaunch._emulator.undefined.plan import Plan, Rule


def move_rule(plan: Plan, how: Moves) -> Rule | None:
    """Return a rule that runs the instruction on the undefined bits themselves.

    All bits of a constant are defined, so zero stands for it. Return None if a register is both
    moved and a control: the instruction cannot run on the bits of only one of the two.
    """
    moved = plan.plain
    controls = how.controls
    # The controls say where bits go (the amount of a shift, the lane of a shuffle). The instruction
    # runs on the marks with the controls unchanged, and each mark goes where its bit goes.
    control_slots = frozenset(
        read_slots(moved.operands[i] for i in controls if i < len(moved.operands))
    )
    data_slots = plan.reads - control_slots
    # From 1 on: operand 0 is the result.
    data = [op for i, op in enumerate(moved.operands) if i and i not in controls]
    if not control_slots.isdisjoint(read_slots(data)):
        return None
    results = definition(moved).results(moved)
    operands = tuple(
        operand if i < results or i in controls else _without_constants(operand)
        for i, operand in enumerate(moved.operands)
    )
    # Without its guard: the caller chooses between old and new by that.
    shadow = decode(plan.decoder, Instruction(moved.name, moved.mods, operands, moved.line))
    # The second result of a shuffle does not depend on the value.
    writes = plan.writes[:1] if isinstance(moved.operands[0], Pair) else plan.writes

    def rule(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
        found, control = context.lanes(group, data_slots), context.lanes(group, control_slots)
        results = {}
        if found is not None:
            origin = found[1]
            copy = context.with_bits(group, data_slots)
            shadow(copy)
            if how.across_lanes:
                origin = _moved_origins(context, group, plan, shadow, origin)
            results = {slot: Taint(spread(group, copy, slot), origin) for slot in writes}
        if control is not None:
            return join(results, whole(group, plan.writes, *control))
        return results

    return rule


def select_rule(plan: Plan) -> Rule | None:
    """Take the chosen operand's bits; if the choice is undefined and matters, all are."""
    move = move_rule(plan, Moves(controls=(3,)))
    if move is None:
        return None
    choice = frozenset(read_slots(plan.plain.operands[3:4]))

    def rule(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
        doubt = context.lanes(group, choice)
        results = move(context, group, plan, active)
        if doubt is None:
            return results
        (slot,), (out,) = choice, plan.writes
        values, bits = [], np.zeros((group.n, *plan.code.zeros[out].shape[1:]), bool)
        bits = bits.astype(plan.code.zeros[out].dtype)
        # Run both choices, with the undefined predicate set to either value. Bits that are
        # undefined in either run, or differ between the runs, are undefined.
        for chosen in (False, True):
            copy = context.with_bits(group, ())
            copy.regs[slot] = np.array([chosen])
            copy.undefined = {s: t for s, t in group.undefined.items() if s != slot}
            taint = move(context, copy, plan, active).get(out)
            bits = bits if taint is None else bits | taint.bits
            plan.run(copy)
            values.append(spread(group, copy, out))
        differ = (bits | (values[0] ^ values[1])) != 0
        either = whole(group, (out,), differ.reshape(group.n, -1).any(axis=1), doubt[1])[out].bits
        known = results[out]
        data = context.lanes(group, plan.reads - choice)
        origin = doubt[1] if data is None else np.where(doubt[0], doubt[1], data[1])
        # `move` has marked everything if the choice is undefined: reduce that.
        return {out: Taint(np.where(doubt[0], either, known.bits), origin)}

    return rule


def _moved_origins(
    context: Context, group: Group, plan: Plan, shadow: Callable[[Group], None], origin: Lanes
) -> Lanes:
    """Send the origins the way of the values, half by half: a shuffle moves 32 bits."""
    value = plan.plain.operands[1]
    assert isinstance(value, Register)
    halves = []
    for shift in (0, 32):
        # An origin has up to 63 bits, and a shuffle moves registers of 32: it goes twice.
        copy = context.with_bits(group, ())
        copy.regs[value.slot] = (origin >> shift & 0xFFFFFFFF).astype(np.uint32)
        shadow(copy)
        halves.append(spread(group, copy, plan.writes[0]).astype(np.int64))
    return halves[0] | halves[1] << 32


def _without_constants(operand: Operand) -> Operand:
    """Return an operand whose constants, all defined, are zero."""
    if isinstance(operand, Immediate | Special | Symbol):
        return Immediate(0)
    if isinstance(operand, Negated):
        return _without_constants(operand.operand)
    if isinstance(operand, Vector):
        return Vector(tuple(_without_constants(item) for item in operand.items))
    return operand
