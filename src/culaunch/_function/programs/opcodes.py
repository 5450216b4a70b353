"""The numbers of a program, as the extension has them: docs/dev/functions.md has what they mean."""

from __future__ import annotations

import builtins
import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._core import program_format

if TYPE_CHECKING:
    from collections.abc import Callable

_FORMAT = program_format()
VERSION: int = _FORMAT["version"]


class Op(NamedTuple):
    """An instruction of a plan.

    Attributes
    ----------
    number : int
    name : str
    operands : str
        A letter for each, as in csrc/function/opcodes.h.
    result : str
        ``i``, ``f``, ``b``, or nothing.
    can_be_left_out : bool
        Whether a program is the same without it where its result is not used.
    has_text : bool
        Whether the place in the body is its last operand.
    symbol : str
        How it is written: an operator, or a name.
    """

    number: int
    name: str
    operands: str
    result: str
    can_be_left_out: bool
    has_text: bool
    symbol: str


# How a body writes an instruction, where that is not its name.
SYMBOLS = {
    "ADD": "+", "SUB": "-", "MUL": "*", "FLOORDIV": "//", "MOD": "%", "POW": "**", "NEG": "-",
    "SHL": "<<", "SHR": ">>", "AND": "&", "OR": "|", "XOR": "^", "INVERT": "~", "TRUEDIV": "/",
    "FADD": "+", "FSUB": "-", "FMUL": "*", "FDIV": "/", "FFLOORDIV": "//", "FMOD": "%",
    "FPOW": "**", "FNEG": "-", "FABS": "abs", "FMIN": "min", "FMAX": "max",
    "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=",
    "FEQ": "==", "FNE": "!=", "FLT": "<", "FLE": "<=", "FGT": ">", "FGE": ">=",
    "IFEQ": "==", "IFNE": "!=", "IFLT": "<", "IFLE": "<=", "IFGT": ">", "IFGE": ">=",
    "AND_B": "and", "OR_B": "or", "XOR_B": "!=", "NEXT_POW2": "next_power_of_2",
    "SELECT_I": "select", "SELECT_F": "select", "SELECT_B": "select",
    "I2F": "float", "B2I": "int", "TRUNC": "int",
}  # fmt: skip
# What raises stays, whether or not its result is used. Overflow alone is left out with the rest:
# Python's ints have none, so a body in Python would not have raised there.
RAISES = frozenset((
    "FLOORDIV", "MOD", "POW", "SHL", "SHR", "CEILDIV", "TRUEDIV", "FDIV", "FFLOORDIV", "FMOD",
    "FPOW", "MATH", "FLOOR", "CEIL", "TRUNC", "ROUND", "CHECK", "RANGE", "FLOAT_RANGE", "DIMENSION",
))  # fmt: skip
_ENDS = ("GUARD", "EFFECTS")


def _op(name: str, number: int, operands: str) -> Op:
    # Capital letters are results, which come first (csrc/function/opcodes.h).
    result = operands[0].lower() if operands[0] in "IFB" else ""
    symbol = SYMBOLS.get(name, name.lower())
    return Op(number, name, operands, result, name not in RAISES, "t" in operands, symbol)


OPS = {
    name: _op(name, *row) for name, row in _FORMAT["opcodes"].items() if name not in _ENDS
}  # fmt: skip
BY_NUMBER = {op.number: op for op in OPS.values()}
GUARD, EFFECTS = (_FORMAT["opcodes"][name][0] for name in _ENDS)

# The functions that instructions compute, of Python's numbers or what stands for them. Tracing
# takes its hints from here, and a plan that runs on shapes its values. csrc/function/plan.cpp has
# the same in 64 bits, with overflow.
COMPUTE: dict[str, Callable[..., Any]] = {
    "ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul, "FLOORDIV": operator.floordiv,
    "MOD": operator.mod, "POW": operator.pow, "NEG": operator.neg, "ABS": abs, "MIN": min,
    "MAX": max, "SHL": operator.lshift, "SHR": operator.rshift, "AND": operator.and_,
    "OR": operator.or_, "XOR": operator.xor, "INVERT": operator.invert,
    "CEILDIV": lambda x, y: -(-x // y),
    "NEXT_POW2": lambda x: 1 << (x - 1).bit_length() if x > 1 else 1,
    "TRUEDIV": operator.truediv, "BIT_LENGTH": lambda x: x.bit_length(),
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt,
    "GE": operator.ge,
    "NOT": operator.not_, "AND_B": lambda x, y: x and y, "OR_B": lambda x, y: x or y,
    "XOR_B": lambda x, y: bool(x) != bool(y), "ISNAN": math.isnan, "ISINF": math.isinf,
    "ISFINITE": math.isfinite, "I2F": float, "FLOOR": math.floor, "CEIL": math.ceil,
    "TRUNC": math.trunc, "ROUND": round, "B2I": int, "FDIV": operator.truediv,
}  # fmt: skip
COMPUTE |= dict.fromkeys(("SELECT_I", "SELECT_F", "SELECT_B"), lambda b, x, y: x if b else y)
COMPUTE |= {name: COMPUTE[name[1:]] for name in OPS if name[0] == "F" and name[1:] in COMPUTE}
COMPUTE |= {name: COMPUTE[name[2:]] for name in OPS if name[:2] == "IF"}

MATH_NUMBER: dict[str, int] = _FORMAT["math"]
MATH_FUNCTIONS = tuple(MATH_NUMBER)
TWO_OPERANDS = frozenset((
    "atan2", "hypot", "copysign", "fmod", "pow", "remainder", "nextafter", "ldexp",
))  # fmt: skip


def math_call(name: str) -> Callable[..., float]:
    """Return a function of ``math`` that takes only floats."""
    function: Callable[..., float] = getattr(math, name)
    # Its exponent is an int, which a register of MATH has as a float: one that is not exact is too
    # large either way.
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

# The options of a launch whose registers are in each of them, -1 without their flag.
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

# Returned values; up to V_CONSTANT, arguments of a call, too.
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
