"""The kind of value that an expression has for any arguments."""

from __future__ import annotations

from culaunch._triton.expressions.tree import LEAVES, Expression, is_boolean

_DIVISIONS = ("/", "//", "%", "cdiv")
# A float if any operand is one.
_ARITHMETIC = ("+", "-", "*", "//", "%", "cdiv", "neg", "abs")


def never_an_int(expression: Expression) -> str:
    """Say why an expression is never an int; "" if it may be one."""
    if expression.op == "error":
        return f"fails: {expression.operands[0]}"
    if _divides_by_zero(expression):
        return "divides by 0"
    if _is_float(expression):
        return "is a float: divide with // or cdiv"
    if is_boolean(expression):
        return "is True or False"
    return "is an element type" if expression.op == "dtype" else ""


def _divides_by_zero(expression: Expression) -> bool:
    op, operands = expression.op, expression.operands
    if op in _DIVISIONS and operands[1].is_constant and operands[1].value == 0:
        return True
    # No call may ever take some branches.
    return op not in LEAVES and any(
        _divides_by_zero(one)
        for one in (operands[:1] if op == "if" else operands)
        if isinstance(one, Expression)
    )


def _is_float(expression: Expression) -> bool:
    op, operands = expression.op, expression.operands
    if expression.is_constant:
        return isinstance(expression.value, float)
    if op in ("/", "float"):
        return True
    if op in _ARITHMETIC:
        return any(map(_is_float, operands))
    return op in ("min", "max", "if") and all(map(_is_float, operands[-2:]))
