"""Instructions of a plan as C++ expressions, over culaunch/function_numbers.h."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from culaunch._function.export.names import text_literal
from culaunch._function.export.refusals import refusal
from culaunch._function.programs import opcodes as oc

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.programs.record import Instruction

CPP_TYPES = {"i": "int64_t", "f": "double", "b": "bool"}

# {0}, {1}, ... are the operands, {at} the place in the body. Those with a place may raise.
_FORMS = {
    "ADD": "fn::Add({0}, {1}, {at})", "SUB": "fn::Subtract({0}, {1}, {at})",
    "MUL": "fn::Multiply({0}, {1}, {at})", "FLOORDIV": "fn::FloorDivide({0}, {1}, {at})",
    "MOD": "fn::Modulo({0}, {1}, {at})", "POW": "fn::Power({0}, {1}, {at})",
    "NEG": "fn::Negate({0}, {at})", "ABS": "fn::Abs({0}, {at})",
    "MIN": "fn::Min({0}, {1})", "MAX": "fn::Max({0}, {1})",
    "SHL": "fn::ShiftLeft({0}, {1}, {at})", "SHR": "fn::ShiftRight({0}, {1}, {at})",
    "AND": "({0} & {1})", "OR": "({0} | {1})", "XOR": "({0} ^ {1})", "INVERT": "(~{0})",
    "CEILDIV": "fn::CeilDivide({0}, {1}, {at})", "NEXT_POW2": "fn::NextPowerOf2({0}, {at})",
    "TRUEDIV": "fn::TrueDivide({0}, {1}, {at})", "BIT_LENGTH": "fn::BitLength({0})",
    "NOT": "!{0}", "AND_B": "({0} && {1})", "OR_B": "({0} || {1})", "XOR_B": "({0} != {1})",
    "SELECT_I": "({0} ? {1} : {2})", "SELECT_F": "({0} ? {1} : {2})",
    "SELECT_B": "({0} ? {1} : {2})",
    "FADD": "({0} + {1})", "FSUB": "({0} - {1})", "FMUL": "({0} * {1})",
    "FDIV": "fn::Divide({0}, {1}, {at})", "FFLOORDIV": "fn::FloorDivide({0}, {1}, {at})",
    "FMOD": "fn::Modulo({0}, {1}, {at})", "FPOW": "fn::Power({0}, {1}, {at})",
    "FNEG": "(-{0})", "FABS": "std::fabs({0})",
    "FMIN": "fn::Min({0}, {1})", "FMAX": "fn::Max({0}, {1})",
    "ISNAN": "std::isnan({0})", "ISINF": "std::isinf({0})", "ISFINITE": "std::isfinite({0})",
    "I2F": "static_cast<double>({0})", "B2I": "int64_t{{{0}}}",
    "FLOOR": "fn::ToInt(std::floor({0}), {at})", "CEIL": "fn::ToInt(std::ceil({0}), {at})",
    "TRUNC": "fn::ToInt(std::trunc({0}), {at})", "ROUND": "fn::ToInt(std::nearbyint({0}), {at})",
    "DEVICE": "call.ordinal()",
}  # fmt: skip
_COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
# An int and a float, by what Compare gives: 2 for NaN.
_MIXED = {
    "IFEQ": "== 0", "IFNE": "!= 0", "IFLT": "== -1", "IFLE": "<= 0", "IFGT": "== 1",
}  # fmt: skip
_SIGNS = ("kUnsigned", "kSigned", "kEither")
# An infinity is too large a result of these, and a pole of the others.
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
    """Write an int of 64 bits; the least has no literal of its own."""
    return "INT64_MIN" if value == -(1 << 63) else str(value)


def float_literal(value: float) -> str:
    """Write a double: the digits that give it back."""
    if math.isnan(value):
        return "double{NAN}"
    # The shortest digits that are read back as this number.
    return repr(value) if math.isfinite(value) else ("HUGE_VAL" if value > 0 else "-HUGE_VAL")


def may_raise(step: Instruction) -> bool:
    """Tell whether an instruction has to stay where it is."""
    form = _FORMS.get(step.op.name, "")
    return "{at}" in form or step.op.name == "MATH"


def expression(function: str, step: Instruction, values: list[str], at: str) -> str:
    """Write an instruction of numbers; what reads arrays is written elsewhere.

    Raises
    ------
    TypeError
        If Python computes it by itself, and no C library the same.
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
    if name in _FORMS:
        # Templates take two operands of one type: literals alone would be ints of 32 bits.
        if len(values) > 1 and all(value.lstrip("-").isdigit() for value in values):
            values = [f"int64_t{{{value}}}" for value in values]
        return _FORMS[name].format(*values, at=at)
    if name in _MIXED:
        return f"(fn::Compare({values[0]}, {values[1]}) {_MIXED[name]})"
    if name == "IFGE":
        return f"fn::IsAtLeast({values[0]}, {values[1]})"
    return f"({values[0]} {_COMPARISONS[name.removeprefix('F')]} {values[1]})"


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
            f"math.{symbol} is computed by Python itself, and by no C library to the same bits",
            step.text,
        )
    overflows = "true" if symbol in _CAN_OVERFLOW else "false"
    called = f"[](double x) {{ return std::{symbol}(x); }}"
    return f"fn::Math({called}, {overflows}, {word}, {values[0]}, {at})"
