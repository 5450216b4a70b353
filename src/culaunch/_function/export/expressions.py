"""Instructions of a plan as C++ expressions, over culaunch/function_numbers.h."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from culaunch._function.export.names import text_literal
from culaunch._function.export.refusals import refusal
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.semantics import SEMANTICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.programs.record import Instruction

CPP_TYPES = {"i": "int64_t", "f": "double", "b": "bool"}

_SIGNS = ("kUnsigned", "kSigned", "kEither")
# These raise for an infinite result because it is too large. For other functions it is a pole.
_CAN_OVERFLOW = frozenset(("exp", "exp2", "expm1", "cosh", "sinh"))
_WORDS = """
    sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
    atanh erf erfc cbrt
"""
_IN_THE_LIBRARY = frozenset(_WORDS.split())
_NEVER_RAISE = {
    "copysign": "std::copysign({0}, {1})", "nextafter": "std::nextafter({0}, {1})",
    "fabs": "std::fabs({0})", "degrees": "fn::Degrees({0})", "radians": "fn::Radians({0})",
}  # fmt: skip


def number(step: Instruction) -> str:
    """Write the number of a CONST instruction."""
    word = step.operands[0]
    if step.op.name == "CONST_B":
        return "true" if word else "false"
    if step.op.name == "CONST_I":
        return int_literal(int(word))
    return float_literal(struct.unpack("<d", struct.pack("<q", word))[0])


def int_literal(value: int) -> str:
    """Write a 64-bit int. The minimum has no literal in C++."""
    return "INT64_MIN" if value == -(1 << 63) else str(value)


def float_literal(value: float) -> str:
    """Write a double with the digits that restore it."""
    if math.isnan(value):
        return "double{NAN}"
    # The shortest digits that read back as this number.
    return repr(value) if math.isfinite(value) else ("HUGE_VAL" if value > 0 else "-HUGE_VAL")


def may_raise(step: Instruction) -> bool:
    """Tell whether an instruction has to stay where it is."""
    row = SEMANTICS.get(step.op.name)
    return step.op.name == "MATH" or (row is not None and "{at}" in row.cpp)


def expression(function: str, step: Instruction, values: list[str], at: str) -> str:
    """Write an instruction on numbers. Instructions that read arrays are written elsewhere.

    Raise TypeError if only Python computes it, and no C library gives the same result.
    """
    name = step.op.name
    if name == "MATH":
        return _math(function, step, values, at)
    if name == "RAISES":
        number, exception, *operands = step.operands
        inner = step._replace(op=oc.BY_NUMBER[number], operands=tuple(operands))
        computed = expression(function, inner, values, '""')
        raised = text_literal(oc.EXCEPTIONS[exception].__name__)
        return f"fn::Raises({raised}, [&] {{ return {computed}; }})"
    if name == "DEVICE":
        return "call.ordinal()"
    # Templates take two operands of the same type, and bare literals would be 32-bit ints.
    if len(values) > 1 and all(value.lstrip("-").isdigit() for value in values):
        values = [f"int64_t{{{value}}}" for value in values]
    return SEMANTICS[name].cpp.format(*values, at=at)


def check_statement(step: Instruction, value: str, at: str) -> str:
    """Write RANGE, FLOAT_RANGE or DIMENSION."""
    if step.op.name == "RANGE":
        _, size, sign = step.operands
        return f"fn::RequireFits({value}, {int(size)}, fn::Sign::{_SIGNS[sign]}, {at});"
    if step.op.name == "FLOAT_RANGE":
        _, code, bits = step.operands
        return f"fn::RequireFloatFits({value}, {int(code)}, {int(bits)}, {at});"
    return f"fn::RequireDimension({value}, {step.operands[1]}, {at});"


def message_parts(text: str, values: Callable[[int], str]) -> list[str]:
    """Write a check's message, with ``{0}`` for numbers, as the parts of fn::Text."""
    import string

    parts: list[str] = []
    for literal, field, _, _ in string.Formatter().parse(text):
        if literal:
            parts.append(text_literal(literal))
        if field is not None:
            parts.append(values(int(field)))
    return parts or ['""']


def _math(function: str, step: Instruction, values: list[str], at: str) -> str:
    symbol = oc.MATH_FUNCTIONS[step.operands[0]]
    if symbol in _NEVER_RAISE:
        return _NEVER_RAISE[symbol].format(*values)
    if symbol == "pow":
        return f"fn::MathPower({values[0]}, {values[1]}, {at})"
    word = text_literal(symbol)
    if symbol in ("atan2", "fmod", "remainder"):
        called = f"[](double x, double y) {{ return std::{symbol}(x, y); }}"
        return f"fn::Math({called}, {word}, {values[0]}, {values[1]}, {at})"
    if symbol not in _IN_THE_LIBRARY:
        raise refusal(
            function,
            f"math.{symbol} is computed by Python itself, and no C library computes the same bits",
            step.text,
        )
    overflows = "true" if symbol in _CAN_OVERFLOW else "false"
    called = f"[](double x) {{ return std::{symbol}(x); }}"
    return f"fn::Math({called}, {overflows}, {word}, {values[0]}, {at})"
