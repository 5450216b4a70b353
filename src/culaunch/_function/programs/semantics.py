"""The meaning of each instruction that computes a number, in one table.

A row has the operator in a body, the function in Python, and the expression in exported C++ over
``culaunch/function_numbers.h``. ``csrc/function/plans/plan.cpp`` computes the same in 64 bits.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Semantics(NamedTuple):
    """The meaning of an instruction."""

    symbol: str
    """Its notation in a body: an operator or a name."""
    compute: Callable[..., Any]
    """The function of Python's numbers or their stand-ins. Tracing takes its hints from it, and a
    plan that runs on shapes its values."""
    cpp: str
    """The expression. ``{0}``, ``{1}``, ... are the operands, ``{at}`` is the place in the body of
    an instruction that may raise."""
    error: str = ""
    """``division`` if it raises for a divisor 0, ``value`` if it raises for other operands. It then
    stays even if no other instruction uses its result. Overflow alone is not an error here:
    Python's ints have none, so a body in Python would not have raised."""


def _infix(symbol: str, compute: Callable[..., Any], cpp: str = "") -> Semantics:
    return Semantics(symbol, compute, f"({{0}} {cpp or symbol} {{1}})")


def _function(symbol: str, compute: Callable[..., Any], cpp: str, error: str = "") -> Semantics:
    """Return the row of a function with two operands that may raise."""
    return Semantics(symbol, compute, f"fn::{cpp}({{0}}, {{1}}, {{at}})", error)


def _to_int(symbol: str, compute: Callable[..., Any], cpp: str) -> Semantics:
    return Semantics(symbol, compute, f"fn::ToInt(std::{cpp}({{0}}), {{at}})", "value")


def next_power_of_2(x: int) -> int:
    """Return the least power of 2 that is not less than an int; 1 for ints below 1."""
    return 1 << (x - 1).bit_length() if x > 1 else 1


_SELECT = Semantics("select", lambda b, x, y: x if b else y, "({0} ? {1} : {2})")
_MIN = Semantics("min", min, "fn::Min({0}, {1})")
_MAX = Semantics("max", max, "fn::Max({0}, {1})")

SEMANTICS = {
    "ADD": _function("+", operator.add, "Add"),
    "SUB": _function("-", operator.sub, "Subtract"),
    "MUL": _function("*", operator.mul, "Multiply"),
    "FLOORDIV": _function("//", operator.floordiv, "FloorDivide", "division"),
    "MOD": _function("%", operator.mod, "Modulo", "division"),
    "POW": _function("**", operator.pow, "Power", "value"),
    "NEG": Semantics("-", operator.neg, "fn::Negate({0}, {at})"),
    "ABS": Semantics("abs", abs, "fn::Abs({0}, {at})"),
    "MIN": _MIN,
    "MAX": _MAX,
    "SHL": _function("<<", operator.lshift, "ShiftLeft", "value"),
    "SHR": _function(">>", operator.rshift, "ShiftRight", "value"),
    "AND": _infix("&", operator.and_),
    "OR": _infix("|", operator.or_),
    "XOR": _infix("^", operator.xor),
    "INVERT": Semantics("~", operator.invert, "(~{0})"),
    "CEILDIV": _function("ceildiv", lambda x, y: -(-x // y), "CeilDivide", "division"),
    "NEXT_POW2": Semantics("next_power_of_2", next_power_of_2, "fn::NextPowerOf2({0}, {at})"),
    "TRUEDIV": _function("/", operator.truediv, "TrueDivide", "division"),
    "BIT_LENGTH": Semantics("bit_length", lambda x: x.bit_length(), "fn::BitLength({0})"),
    "NOT": Semantics("not", operator.not_, "!{0}"),
    "AND_B": _infix("and", lambda x, y: x and y, "&&"),
    "OR_B": _infix("or", lambda x, y: x or y, "||"),
    "XOR_B": _infix("!=", lambda x, y: bool(x) != bool(y)),
    "SELECT_I": _SELECT,
    "SELECT_F": _SELECT,
    "SELECT_B": _SELECT,
    "FADD": _infix("+", operator.add),
    "FSUB": _infix("-", operator.sub),
    "FMUL": _infix("*", operator.mul),
    "FDIV": _function("/", operator.truediv, "Divide", "division"),
    "FFLOORDIV": _function("//", operator.floordiv, "FloorDivide", "division"),
    "FMOD": _function("%", operator.mod, "Modulo", "division"),
    "FPOW": _function("**", operator.pow, "Power", "value"),
    "FNEG": Semantics("-", operator.neg, "(-{0})"),
    "FABS": Semantics("abs", abs, "std::fabs({0})"),
    "FMIN": _MIN,
    "FMAX": _MAX,
    "ISNAN": Semantics("isnan", math.isnan, "std::isnan({0})"),
    "ISINF": Semantics("isinf", math.isinf, "std::isinf({0})"),
    "ISFINITE": Semantics("isfinite", math.isfinite, "std::isfinite({0})"),
    "I2F": Semantics("float", float, "static_cast<double>({0})"),
    "B2I": Semantics("int", int, "int64_t{{{0}}}"),
    "FLOOR": _to_int("floor", math.floor, "floor"),
    "CEIL": _to_int("ceil", math.ceil, "ceil"),
    "TRUNC": _to_int("int", math.trunc, "trunc"),
    "ROUND": _to_int("round", round, "nearbyint"),
}

# On two ints, on two floats, and on an int and a float. Compare returns -1, 0 or 1, and 2 for NaN.
for _name, _symbol, _compute, _mixed in (
    ("EQ", "==", operator.eq, "(fn::Compare({0}, {1}) == 0)"),
    ("NE", "!=", operator.ne, "(fn::Compare({0}, {1}) != 0)"),
    ("LT", "<", operator.lt, "(fn::Compare({0}, {1}) == -1)"),
    ("LE", "<=", operator.le, "(fn::Compare({0}, {1}) <= 0)"),
    ("GT", ">", operator.gt, "(fn::Compare({0}, {1}) == 1)"),
    ("GE", ">=", operator.ge, "fn::IsAtLeast({0}, {1})"),
):
    SEMANTICS[_name] = SEMANTICS[f"F{_name}"] = _infix(_symbol, _compute)
    SEMANTICS[f"IF{_name}"] = Semantics(_symbol, _compute, _mixed)
