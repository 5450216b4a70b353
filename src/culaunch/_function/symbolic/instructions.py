"""Functions of symbolic numbers with instructions: min, max, ceildiv, functions of ``math``."""

from __future__ import annotations

import operator
from typing import Any

from culaunch._base.places import here
from culaunch._function.programs.opcodes import COMPUTE, MATH_NUMBER, TWO_OPERANDS, math_call
from culaunch._function.symbolic.arithmetic import (
    as_float,
    as_int,
    float_binary,
    int_binary,
    int_unary,
)
from culaunch._function.symbolic.needs import require
from culaunch._function.symbolic.symbols import (
    hint_of,
    is_kind,
    is_symbolic,
    kind_of,
    make,
    raising,
    record_of,
    register_of,
    settled,
)


def select(condition: Any, x: Any, y: Any) -> Any:
    """Return x if a condition holds, and otherwise y, without deciding it."""
    condition, x, y = settled(condition), settled(x), settled(y)
    if not is_kind(condition, "b"):
        return x if condition else y
    if "f" in (kind_of(x), kind_of(y)):
        x, y, name = as_float(x), as_float(y), "SELECT_F"
    elif kind_of(x) == kind_of(y) == "b":
        name = "SELECT_B"
    else:
        x, y, name = as_int(x), as_int(y), "SELECT_I"
    record = condition._record
    operands = (condition._register, register_of(record, x), register_of(record, y))
    return make(record, record.emit(name, operands, hint_of(x if condition.hint else y)))


def extreme(name: str, x: Any, y: Any) -> Any:
    """Return the smaller (MIN) or the larger (MAX) of two numbers."""
    x, y = settled(x), settled(y)
    if not is_symbolic(x) and not is_symbolic(y):
        return COMPUTE[name](x, y)
    left, right = kind_of(x), kind_of(y)
    if left is None or right is None:
        raise TypeError(
            f"at {here().text()}: {name.lower()} must get only numbers, because one of its "
            "arguments is a number of the call"
        )
    if left == right == "f":
        return float_binary(f"F{name}", COMPUTE[name], x, y)
    if "f" in (left, right):  # the numbers determine the result's type: one path for each
        return COMPUTE[name](x, y)
    return int_binary(name, COMPUTE[name], as_int(x), as_int(y))


def ceildiv(x: Any, y: Any) -> Any:
    """Return x / y, rounded up, for ints."""
    x, y = settled(x), settled(y)
    if not is_symbolic(x) and not is_symbolic(y):
        return COMPUTE["CEILDIV"](x, y)
    if {kind_of(x), kind_of(y)} - {"i", "b"}:
        raise TypeError(
            f"at {here().text()}: ceildiv must get ints, because one of its arguments is a number "
            "of the call"
        )
    if type(y) is int and y == 1:
        return as_int(x)
    return int_binary("CEILDIV", COMPUTE["CEILDIV"], as_int(x), as_int(y))


def next_power_of_2(x: Any) -> Any:
    """Return the least power of 2 that is not less than an int; 1 for ints below 1."""
    x = as_int(settled(x))
    if is_kind(x, "i"):
        return int_unary("NEXT_POW2", x)
    return COMPUTE["NEXT_POW2"](operator.index(x))


def math_function(name: str, *operands: Any) -> Any:
    """Apply a function of ``math`` to numbers, at least one of them symbolic."""
    values = tuple(as_float(value) for value in operands)
    function = math_call(name)
    if not any(is_symbolic(value) for value in values):
        return function(*values)
    record = record_of(*values)
    number = MATH_NUMBER[name]
    second = () if name in TWO_OPERANDS else (-1,)
    registers = (number, *(register_of(record, value) for value in values), *second)
    known = record.recorded("MATH", registers)
    if known is None:
        require(record, "MATH", values, f"math.{name}", number)
        hints = tuple(map(hint_of, values))
        hint = raising(record, lambda: function(*hints), f"math.{name}", 1.0)
        known = record.emit("MATH", registers, hint)
    return make(record, known)


def classify(name: str, value: Any) -> Any:
    """Tell whether a number is NaN, infinite or finite: ISNAN, ISINF or ISFINITE."""
    value = settled(value)
    if not is_kind(value, "f"):
        return name == "ISFINITE" if is_symbolic(value) else COMPUTE[name](value)
    record = value._record
    return make(record, record.emit(name, (value._register,), COMPUTE[name](value.hint)))
