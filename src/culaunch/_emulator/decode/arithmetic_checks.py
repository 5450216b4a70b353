"""Integer divisions by zero and signed overflow, which a GPU does not report."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.decode.liveness import read_slots
from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.types import Lanes, is_integer, is_signed, lane_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction

# The results of instructions on Python's integers, which do not overflow.
_EXACT: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mad": lambda a, b, c: a * b + c,
    "neg": operator.neg,
    "abs": abs,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0,
}
_NOT_LOW = frozenset(("hi", "wide", "sat", "cc"))


def check_arithmetic(decoder: Decoder, instruction: Instruction, op: Op) -> Op:
    """Return an operation that also checks what `op` computes, if the options ask for it."""
    checks = decoder.symbols.checks
    if not (checks.division or checks.overflow):
        return op
    kind = next((word for word in reversed(instruction.mods) if word[1:].isdigit()), "")
    name = instruction.name
    if not is_integer(kind or "x"):
        return op
    tests: list[Callable[..., tuple[Lanes, str] | None]] = []
    if checks.division and name in ("div", "rem"):
        tests.append(_by_zero)
    if (
        checks.overflow
        and name in _EXACT
        and is_signed(kind)
        and _NOT_LOW.isdisjoint(instruction.mods)
    ):
        tests.append(_overflows)
    if not tests:
        return op
    sources = instruction.operands[1:]
    readers = [decoder.read(operand, kind) for operand in sources]
    guard = None if instruction.guard is None else decoder.read(instruction.guard, "pred")
    slots, dtype = read_slots(sources), lane_dtype(kind)

    def run(group: Group) -> None:
        values = [np.broadcast_to(read(group).view(dtype), (group.n,)) for read in readers]
        for test in tests:
            found = test(instruction, values)
            if found is None:
                continue
            wrong, what = found
            # An undefined value is another report's matter, and may never be used.
            for slot in slots:
                if slot in group.undefined:
                    wrong = wrong & ~group.undefined[slot].lanes
            if guard is not None:
                wrong = wrong & guard(group)
            index = np.flatnonzero(wrong)
            if index.shape[0]:
                numbers = ", ".join(str(value[index[0]]) for value in values)
                raise Fault(
                    LAUNCH_FAILED,
                    f"{what}: {instruction.opcode} of {numbers}",
                    kind=_KINDS[test],
                    lane=group.lane_at(int(index[0])),
                )
        op(group)

    return run


def _by_zero(instruction: Instruction, values: list[Lanes]) -> tuple[Lanes, str] | None:
    wrong: Lanes = values[1] == 0
    what = "remainder" if instruction.name == "rem" else "division"
    return (wrong, f"integer {what} by zero") if wrong.any() else None


def _overflows(instruction: Instruction, values: list[Lanes]) -> tuple[Lanes, str] | None:
    """Return the lanes whose result does not fit its type."""
    compute, info = _EXACT[instruction.name], np.iinfo(values[0].dtype)
    if instruction.name == "div":
        wrong: Lanes = (values[0] == info.min) & (values[1] == -1)
    elif info.bits < 64:
        exact = compute(*[value.astype(np.int64) for value in values])
        wrong = (exact < info.min) | (exact > info.max)
    else:
        # Floats find the few results that may not fit, and Python's integers compute these.
        about = np.abs(compute(*[value.astype(np.float64) for value in values]))
        wrong = about >= float(1 << 62)
        for i in np.flatnonzero(wrong):
            result = compute(*[int(value[i]) for value in values])
            wrong[i] = not info.min <= result <= info.max
    return (wrong, "signed integer overflow") if wrong.any() else None


_KINDS = {_by_zero: "division-by-zero", _overflows: "overflow"}
