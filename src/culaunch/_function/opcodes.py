"""The numbers of a program: docs/dev/functions.md has what they mean."""

from __future__ import annotations

import math
import re
import struct
from typing import NamedTuple

VERSION = 1


class Op(NamedTuple):
    """An instruction of a plan.

    Attributes
    ----------
    number : int
    name : str
    operands : str
        A letter for each.
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


# Results and operands are written as in csrc/function/opcodes.h: I F B the result; i f b a register
# that is read; n a number, p a parameter, a an array argument, x an axis, m a function of math, t a
# text.
_TABLE = """
    1 CONST_I In | 2 CONST_F Fn | 3 CONST_B Bn | 4 ARG_I Ip | 5 ARG_F Fp | 7 DIM Iax
    8 STRIDE Iax | 9 CONTIGUOUS Ba | 10 ADDRESS Ia | 11 DEVICE I | 12 DEVICE_ATTRIBUTE In
    16 ADD Iiit + | 17 SUB Iiit - | 18 MUL Iiit * | 19 FLOORDIV Iiit // | 20 MOD Iiit %
    21 POW Iiit ** | 22 NEG Iit - | 23 ABS Iit | 24 MIN Iiit | 25 MAX Iiit | 26 SHL Iiit <<
    27 SHR Iiit >> | 28 AND Iiit & | 29 OR Iiit BAR | 30 XOR Iiit ^ | 31 INVERT Iit ~
    32 CEILDIV Iiit | 33 NEXT_POW2 Iit next_power_of_2 | 34 TRUEDIV Fiit / | 35 BIT_LENGTH Iit
    40 EQ Bii == | 41 NE Bii != | 42 LT Bii < | 43 LE Bii <= | 44 GT Bii > | 45 GE Bii >=
    46 FEQ Bff == | 47 FNE Bff != | 48 FLT Bff < | 49 FLE Bff <= | 50 FGT Bff > | 51 FGE Bff >=
    52 NOT Bb | 53 AND_B Bbb and | 54 OR_B Bbb or | 55 SELECT_I Ibii select
    56 SELECT_F Fbff select | 57 SELECT_B Bbbb select | 58 XOR_B Bbb != | 64 FADD Ffft +
    65 FSUB Ffft - | 66 FMUL Ffft * | 67 FDIV Ffft / | 68 FFLOORDIV Ffft // | 69 FMOD Ffft %
    70 FPOW Ffft ** | 71 FNEG Fft - | 72 FABS Fft abs | 73 FMIN Ffft min | 74 FMAX Ffft max
    80 MATH Fmfgt | 81 ISNAN Bf | 82 ISINF Bf | 83 ISFINITE Bf | 88 I2F Fi float | 89 FLOOR Ift
    90 CEIL Ift | 91 TRUNC Ift int | 92 ROUND Ift | 93 B2I Ib int | 96 CHECK btn*
    97 RANGE innt | 98 FLOAT_RANGE fnnt | 99 DIMENSION int | 104 IFEQ Bif == | 105 IFNE Bif !=
    106 IFLT Bif < | 107 IFLE Bif <= | 108 IFGT Bif > | 109 IFGE Bif >=
"""
# Only overflow is left out with what is not used: Python's ints have none.
_WORDS = """
    FLOORDIV MOD POW SHL SHR CEILDIV TRUEDIV FDIV FFLOORDIV FMOD FPOW MATH FLOOR CEIL TRUNC ROUND
    CHECK RANGE FLOAT_RANGE DIMENSION
"""
_NOT_LEFT_OUT = frozenset(_WORDS.split())


def _read(row: str) -> Op:
    number, name, operands, *symbol = row.split()
    result = operands[0].lower() if operands[0] in "IFB" else ""
    sign = symbol[0].replace("BAR", "|") if symbol else name.lower()
    can_go = name not in _NOT_LEFT_OUT
    return Op(int(number), name, operands, result, can_go, "t" in operands, sign)


OPS = {op.name: op for op in map(_read, re.split(r"\s*[|\n]\s*(?=\d)", _TABLE.strip()))}
BY_NUMBER = {op.number: op for op in OPS.values()}

GUARD, EFFECTS = 112, 113
ALLOCATE, VIEW, MEMSET, LAUNCH, CALL, RETURN = 1, 2, 3, 4, 5, 6

_NAMES = """
    sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh
    tanh asinh acosh atanh hypot erf erfc copysign cbrt fmod lgamma gamma
    pow remainder nextafter fabs degrees radians
"""
MATH_FUNCTIONS = tuple(_NAMES.split())
MATH_NUMBER = {name: number for number, name in enumerate(MATH_FUNCTIONS)}
TWO_OPERANDS = frozenset(("atan2", "hypot", "copysign", "fmod", "pow", "remainder", "nextafter"))

EXCEPTIONS: tuple[type[Exception], ...] = (
    ValueError, TypeError, AssertionError, IndexError, OverflowError, ZeroDivisionError,
    RuntimeError, NotImplementedError,
)  # fmt: skip

# Flags of a launch.
COOPERATIVE, PROGRAMMATIC, PRIORITY, CLUSTER, PREFERRED_CLUSTER, SHARED_MEMORY = 1, 2, 4, 8, 16, 32
# What a parameter is made of.
P_ARRAY, P_INT, P_FLOAT, P_BOOL, P_BYTES, P_NULL, P_TENSOR_MAP, P_OBJECT = range(8)
# Returned values; up to V_CONSTANT, arguments of a call, too.
(
    V_NONE, V_INT, V_FLOAT, V_BOOL, V_ARRAY, V_ARGUMENT, V_CONSTANT, V_TUPLE, V_LIST, V_DICT,
    V_MADE, V_ELEMENT,
) = range(12)  # fmt: skip


def is_within(name: str, value: float, limits: tuple[int, ...]) -> bool:
    """Tell whether a value passes RANGE, FLOAT_RANGE or DIMENSION."""
    if name == "DIMENSION":
        return 1 <= value <= limits[0]
    if name == "FLOAT_RANGE":
        return fits_float(value, *limits)
    size, is_signed = limits
    low = 0 if is_signed == 0 else -(1 << 8 * size - 1)
    high = 1 << 8 * size - 1 if is_signed == 1 else 1 << 8 * size
    return low <= value < high


def fits_float(value: float, code: int, bits: int) -> bool:
    """Tell whether a finite number stays finite in a type, by DLPack's code and its bits."""
    if not math.isfinite(value) or bits == 64:
        return True
    if code == 4:  # bfloat16: 8 bits of precision, rounded to even
        return abs(value) < 2.0**128 * (1 - 2.0**-9)
    try:
        struct.pack("<e" if bits == 16 else "<f", value)
    except OverflowError:
        return False
    return True
