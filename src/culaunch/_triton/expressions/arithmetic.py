"""The operations of expressions on plain values: Python's, limited to 64-bit numbers."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST, _MOST = -(2**63), 2**63 - 1
_PLAIN = (bool, int, float)


class ExpressionError(ValueError):
    """Why an expression has no value."""


def _checked(value: Any) -> Any:
    # C computes with 64 bits, and a saved expression must mean the same in both.
    if type(value) is int and not _LEAST <= value <= _MOST:
        raise ExpressionError("a number of more than 64 bits")
    return value


def _numbers(call: Callable[..., Any]) -> Callable[..., Any]:
    """Apply an operation only to numbers: for text and tuples it would mean something else."""

    def apply(*values: Any) -> Any:
        for value in values:
            if not isinstance(value, _PLAIN):
                raise ExpressionError(f"{value!r:.60} is not a number")
        try:
            return _checked(call(*values))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ExpressionError(str(error)) from None

    return apply


def _shift(call: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def apply(value: int, count: int) -> int:
        if not 0 <= count <= 63:
            raise ExpressionError(f"a shift by {count}, but it must be by 0 to 63")
        return call(value, count)

    return apply


def _cdiv(value: Any, divisor: Any) -> Any:
    return (value + divisor - 1) // divisor


def _next_power_of_2(value: int) -> int:
    if not isinstance(value, int):
        raise ExpressionError(f"next_power_of_2 of {value}: it takes an int")
    # Like Triton's own function, which returns 0 for numbers that are not positive.
    return 1 << (value - 1).bit_length() if value > 0 else 0


def _same(one: Any, other: Any) -> bool:
    """Compare two values; element types are compared by their names."""
    return bool(one == other)


APPLY: dict[str, Callable[..., Any]] = {
    "+": _numbers(operator.add),
    "-": _numbers(operator.sub),
    "*": _numbers(operator.mul),
    "/": _numbers(operator.truediv),
    "//": _numbers(operator.floordiv),
    "%": _numbers(operator.mod),
    "<<": _numbers(_shift(operator.lshift)),
    ">>": _numbers(_shift(operator.rshift)),
    "&": _numbers(operator.and_),
    "|": _numbers(operator.or_),
    "^": _numbers(operator.xor),
    "<": _numbers(operator.lt),
    "<=": _numbers(operator.le),
    ">": _numbers(operator.gt),
    ">=": _numbers(operator.ge),
    "neg": _numbers(operator.neg),
    "invert": _numbers(lambda value: -1 - value if type(value) is not float else ~value),  # type: ignore[operator]
    "abs": _numbers(abs),
    "int": _numbers(int),
    "float": _numbers(float),
    "ceil": _numbers(math.ceil),
    "floor": _numbers(math.floor),
    "min": _numbers(min),
    "max": _numbers(max),
    "cdiv": _numbers(_cdiv),
    "next_power_of_2": _numbers(_next_power_of_2),
    "==": _same,
    "!=": lambda one, other: not _same(one, other),
    "not": operator.not_,
    "bool": bool,
}
# The number of operands of each operation.
ARITY = {
    "if": 3,
    **dict.fromkeys(APPLY, 2),
    **dict.fromkeys(
        ("neg", "invert", "abs", "int", "float", "ceil", "floor", "next_power_of_2", "not", "bool"),
        1,
    ),
}
