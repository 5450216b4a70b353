"""The limits of numbers that a plan's instructions check."""

from __future__ import annotations

import math
import struct
from typing import Any

from culaunch._launch.formats.dlpack import TypeCode


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


def is_within_traced(name: str, value: Any, limits: tuple[int, ...]) -> bool:
    """Tell the same for a number of a trace, using guards."""
    if name == "DIMENSION":
        return bool((value >= 1) & (value <= limits[0]))
    if name == "RANGE":
        size, is_signed = limits
        low = 0 if is_signed == 0 else -(1 << 8 * size - 1)
        high = 1 << 8 * size - 1 if is_signed == 1 else 1 << 8 * size
        return bool((value >= low) & (value < high))
    code, bits = limits
    if bits == 64:
        return True
    least = _LEAST_TOO_LARGE[code, bits]
    is_finite = (abs(value) < least) | (abs(value) == math.inf)
    return bool(is_finite | (value != value))


def fits_float(value: float, code: int, bits: int) -> bool:
    """Tell whether a finite number stays finite in a type with DLPack's code and bits."""
    if not math.isfinite(value) or bits == 64:
        return True
    if code == TypeCode.BFLOAT:  # 8 bits of precision, rounded to even
        return abs(value) < 2.0**128 * (1 - 2.0**-9)
    try:
        struct.pack("<e" if bits == 16 else "<f", value)
    except OverflowError:
        return False
    return True


# The smallest numbers that round to infinity: halfway from the largest number to its successor.
_LEAST_TOO_LARGE: dict[tuple[int, int], float] = {
    (TypeCode.FLOAT, 16): 65520.0,
    (TypeCode.FLOAT, 32): 2.0**128 * (1 - 2.0**-25),
    (TypeCode.BFLOAT, 16): 2.0**128 * (1 - 2.0**-9),
}
