"""Refuse what ptxas refuses of a well-formed module: unknown names, wrong numbers of operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.values import counted
from culaunch._emulator.ptx.special_names import is_special
from culaunch._emulator.ptx.syntax import (
    Address,
    Instruction,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    Vector,
)
from culaunch._errors import ImageError

if TYPE_CHECKING:
    from culaunch._emulator.ptx.tokens import Tokens

# The number of operands of an instruction, counting those in braces as one. If the number depends
# on modifiers, the decoder checks it.
_COUNTS = {
    name: range(least, most + 1)
    for least, most, names in (
        (2, 2, "mov abs neg not cnot popc clz brev bfind testp"),
        (2, 2, "sqrt rsqrt rcp sin cos lg2 ex2 tanh"),
        (2, 2, "cvta isspacep"),
        (2, 4, "cvt"),
        (3, 3, "add sub addc subc mul mul24 div rem and or xor shl shr copysign bmsk szext"),
        (3, 4, "min max setp set"),
        (4, 4, "mad madc mad24 sad fma shf prmt bfe selp slct dp4a dp2a fns"),
        (4, 4, "vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4"),
        (4, 4, "vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2"),
        (5, 5, "bfi"),
        (5, 6, "lop3"),
        (2, 3, "ld st"),
    )
    for name in names.split()
}


def check_bodies(module: Module, tokens: Tokens) -> None:
    """Check the names and the numbers of operands in the bodies, which are parsed.

    Raises
    ------
    ImageError
        For the first that is wrong; the message has the line.
    """
    # Labels are not among the names: `parse_body` has resolved those that branches use.
    for function in module.functions.values():
        known = {*module.variables, *module.functions, *module.aliases, *function.variables}
        known |= function.prototypes
        if function.is_kernel:
            known.update(param.name for param in function.params)
        for instruction in function.instructions:
            problem = _problem(instruction, known)
            if problem is not None:
                line = instruction.line
                raise ImageError(
                    f"{problem}, in: {tokens.line_text(line)}", source=f"PTX line {line}"
                )


def _problem(instruction: Instruction, known: set[str]) -> str | None:
    operands, guard = instruction.operands, instruction.guard
    count = len(operands)
    if count not in _COUNTS.get(instruction.name, (count,)):
        return f"{instruction.name} has {count} operands"
    if guard is not None:
        predicate = guard.operand if isinstance(guard, Negated) else guard
        if not isinstance(predicate, Register) or predicate.type != "pred":
            return "the guard is not a predicate"
    if instruction.name in ("ld", "st"):
        value = operands[0 if instruction.name == "ld" else 1]
        items = len(value.items) if isinstance(value, Vector) else 1
        # A vector access moves as many elements as registers; a wrong number would move the wrong
        # bytes.
        if items != next((int(w[1:]) for w in instruction.mods if w in ("v2", "v4", "v8")), 1):
            return f"{instruction.opcode} of {counted(items, 'register')}"
    for operand in operands:
        name = _unknown(operand, known)
        if name is not None:
            return f"{name!r} is not defined"
    return None


def _unknown(operand: Operand, known: set[str]) -> str | None:
    """Return the first name in `operand` that is unknown."""
    if isinstance(operand, Symbol):
        return None if operand.name in known else operand.name
    if isinstance(operand, Special):
        return None if is_special(operand.name) else f"%{operand.name}"
    inner: tuple[Operand, ...] = ()
    if isinstance(operand, Address):
        inner = (operand.base,)
    elif isinstance(operand, Vector):
        inner = operand.items
    elif isinstance(operand, Pair):
        inner = (operand.first, operand.second)
    elif isinstance(operand, Negated):
        inner = (operand.operand,)
    return next(filter(None, (_unknown(item, known) for item in inner)), None)
