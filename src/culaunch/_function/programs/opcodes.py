"""The numbers of a program, as the extension declares them; docs/dev/functions.md explains them."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, NamedTuple

from culaunch._core import program_format
from culaunch._function.programs.semantics import SEMANTICS

if TYPE_CHECKING:
    from collections.abc import Callable

_FORMAT = program_format()
VERSION: int = _FORMAT["version"]


class Op(NamedTuple):
    """An instruction of a plan."""

    number: int
    name: str
    operands: str
    """A letter for each, as in csrc/function/program/opcodes.h."""
    result: str
    """``i``, ``f``, ``b``, or nothing."""
    can_be_left_out: bool
    """Whether it can be omitted if its result is not used."""
    has_text: bool
    """Whether the place in the body is its last operand."""
    symbol: str
    """Its notation: an operator, or a name."""


_ENDS = ("GUARD", "EFFECTS")


def _op(name: str, number: int, operands: str) -> Op:
    # Capital letters are results, which come first (csrc/function/program/opcodes.h).
    result = operands[0].lower() if operands[0] in "IFB" else ""
    row = SEMANTICS.get(name)
    symbol = name.lower() if row is None else row.symbol
    stays = not result or name == "MATH" or (row is not None and row.error != "")
    return Op(number, name, operands, result, not stays, "t" in operands, symbol)


OPS = {
    name: _op(name, *row) for name, row in _FORMAT["opcodes"].items() if name not in _ENDS
}  # fmt: skip
BY_NUMBER = {op.number: op for op in OPS.values()}
GUARD, EFFECTS = (_FORMAT["opcodes"][name][0] for name in _ENDS)

COMPUTE = {name: row.compute for name, row in SEMANTICS.items()}
MATH_NUMBER: dict[str, int] = _FORMAT["math"]
MATH_FUNCTIONS = tuple(MATH_NUMBER)
TWO_OPERANDS = frozenset((
    "atan2", "hypot", "copysign", "fmod", "pow", "remainder", "nextafter", "ldexp",
))  # fmt: skip


def math_call(name: str) -> Callable[..., float]:
    """Return a function of ``math`` that takes only floats."""
    function: Callable[..., float] = getattr(math, name)
    # The exponent is an int, but a register of MATH holds a float. An inexact one is too large
    # either way.
    return (lambda x, y: math.ldexp(x, int(y))) if name == "ldexp" else function


EXCEPTIONS: tuple[type[Exception], ...] = tuple(
    getattr(builtins, name) for name in _FORMAT["exceptions"]
)

_EFFECTS: dict[str, int] = _FORMAT["effects"]
ALLOCATE = _EFFECTS["allocate"]
VIEW = _EFFECTS["view"]
MEMSET = _EFFECTS["memset"]
LAUNCH = _EFFECTS["launch"]
CALL = _EFFECTS["call"]
RETURN = _EFFECTS["return"]

# The options whose registers every launch stores, -1 without their flag.
FIRST_FLAGS: int = _FORMAT["first_flags"]

# The possible sources of a parameter's value.
_SOURCES: dict[str, int] = _FORMAT["sources"]
P_ARRAY = _SOURCES["array"]
P_INT = _SOURCES["int"]
P_FLOAT = _SOURCES["float"]
P_BOOL = _SOURCES["bool"]
P_BYTES = _SOURCES["bytes"]
P_NULL = _SOURCES["null"]
P_TENSOR_MAP = _SOURCES["tensor_map"]
P_OBJECT = _SOURCES["object"]

# Values to return. Up to V_CONSTANT, they are also arguments of a call.
_VALUES: dict[str, int] = _FORMAT["values"]
V_NONE = _VALUES["none"]
V_INT = _VALUES["int"]
V_FLOAT = _VALUES["float"]
V_BOOL = _VALUES["bool"]
V_ARRAY = _VALUES["array"]
V_ARGUMENT = _VALUES["argument"]
V_CONSTANT = _VALUES["constant"]
V_TUPLE = _VALUES["tuple"]
V_LIST = _VALUES["list"]
V_DICT = _VALUES["dict"]
V_MADE = _VALUES["called"]
V_ELEMENT = _VALUES["element"]
# Values in registers.
V_NUMBERS = (V_INT, V_FLOAT, V_BOOL)
