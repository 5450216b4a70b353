"""Exact f64 arithmetic on Python integers, for the few lanes that float64 cannot settle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.numerics.formats import Bits, Floats, Mask

_INFINITY = 0x7FF << 52
_SIGN = 1 << 63


def repair(
    bits: Bits, lanes: Mask, operation: Callable[..., int], operands: tuple[Floats, ...], mode: str
) -> None:
    """Recompute some lanes, in place.

    Parameters
    ----------
    bits : numpy.ndarray of uint64
        The results so far.
    lanes : numpy.ndarray of bool
        Lanes to recompute. Lanes with an operand that is not finite stay as they are.
    operation : callable
        One of the functions below.
    operands : tuple of numpy.ndarray of float64
        Its operands; they broadcast to the shape of `bits`.
    mode : {"rn", "rz", "rm", "rp"}
        The rounding.
    """
    if not lanes.any():
        return
    full = [np.broadcast_to(x, bits.shape) for x in operands]
    finite = np.broadcast_to(lanes, bits.shape)
    for x in full:
        finite = finite & np.isfinite(x)
    for index in zip(*np.nonzero(finite), strict=True):
        bits[index] = operation(*(float(x[index]) for x in full), mode)


def mul(a: float, b: float, mode: str) -> int:
    """Return the bits of ``a * b``."""
    negative = math.copysign(1, a) != math.copysign(1, b)
    (x, e), (y, f) = _mantissa_and_exponent(a), _mantissa_and_exponent(b)
    return _round(negative, abs(x * y), e + f, mode)


def fma(a: float, b: float, c: float, mode: str) -> int:
    """Return the bits of ``a * b + c``."""
    (x, e), (y, f), (z, g) = (
        _mantissa_and_exponent(a),
        _mantissa_and_exponent(b),
        _mantissa_and_exponent(c),
    )
    # With both addends as multiples of the smaller unit, the sum is an integer sum.
    exponent = min(e + f, g)
    total = ((x * y) << (e + f - exponent)) + (z << (g - exponent))
    if total:
        return _round(total < 0, abs(total), exponent, mode)
    signs = [math.copysign(1, a) * math.copysign(1, b) < 0, math.copysign(1, c) < 0]
    return _SIGN if (any(signs) if mode == "rm" else all(signs)) else 0


def div(a: float, b: float, mode: str) -> int:
    """Return the bits of ``a / b``; `b` is not zero."""
    negative = math.copysign(1, a) != math.copysign(1, b)
    (x, e), (y, f) = _mantissa_and_exponent(a), _mantissa_and_exponent(b)
    # 120 bits more than needed, and one for whether anything is left: enough to round from.
    quotient, rest = divmod(abs(x) << 120, abs(y))
    return _round(negative, quotient << 1 | bool(rest), e - f - 121, mode)


def sqrt(a: float, mode: str) -> int:
    """Return the bits of the square root of a positive number."""
    x, e = _mantissa_and_exponent(a)
    shift = 200 + (e & 1)  # the exponent that is left must be even
    root = math.isqrt(x << shift)
    rest = root * root != x << shift
    return _round(False, root << 1 | rest, (e - shift) // 2 - 1, mode)


def _mantissa_and_exponent(x: float) -> tuple[int, int]:
    mantissa, exponent = math.frexp(x)
    return int(mantissa * 2.0**53), exponent - 53


def _round(negative: bool, magnitude: int, exponent: int, mode: str) -> int:
    sign = _SIGN if negative else 0
    if not magnitude:
        return sign
    # The exponent of the last bit that is kept: the number's exponent less 52, but at least the
    # exponent of subnormals.
    unit = max(magnitude.bit_length() - 1 + exponent, -1022) - 52
    shift = unit - exponent
    if shift <= 0:
        count, rest, half = magnitude << -shift, 0, 1
    else:
        count, rest, half = magnitude >> shift, magnitude & ((1 << shift) - 1), 1 << (shift - 1)
    away = (mode == "rp" and not negative) or (mode == "rm" and negative)
    if mode == "rn":
        count += rest > half or (rest == half and count & 1)
    elif away and rest:
        count += 1
    # The carry of a full count moves into the exponent by itself.
    bits = ((unit + 1074) << 52) + count
    if bits >= _INFINITY:
        bits = _INFINITY if mode == "rn" or away else _INFINITY - 1
    return sign | bits
