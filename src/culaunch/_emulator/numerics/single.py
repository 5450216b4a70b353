"""Arithmetic on f32 and the half-width formats, through exact float64 products and sums.

Functions take and give bits. NaN results are canonical; flushing and clamping are the
caller's.
"""

from __future__ import annotations

import numpy as np

from culaunch._emulator.numerics.formats import FORMATS, Bits, Floats, canonical, to_f64
from culaunch._emulator.numerics.rounding import narrow, step, sum_to_odd

_NAN = np.uint32(0x7FFFFFFF)
_LOW = np.uint64(0x1FFFFFFF)  # the bits of a float64 below the last bit of a float32
_TIE = np.uint64(0x10000000)
_NORMAL = np.float32(2.0**-126)


def add(kind: str, a: Bits, b: Bits, rounding: str) -> Bits:
    """Add, rounding once."""
    if kind == "f32" and rounding == "rn":
        return _canonical_single(a.view(np.float32) + b.view(np.float32))
    if kind == "f16" and rounding == "rn":
        # With 24 bits or more in between, rounding a sum or product twice does no harm.
        return _canonical_half(_widen(a) + _widen(b))
    total = sum_to_odd(to_f64(kind, a), to_f64(kind, b), rounding)
    return canonical(FORMATS[kind], narrow(kind, total, rounding))


def mul(kind: str, a: Bits, b: Bits, rounding: str) -> Bits:
    """Multiply, rounding once."""
    if kind == "f32" and rounding == "rn":
        return _canonical_single(a.view(np.float32) * b.view(np.float32))
    if kind == "f16" and rounding == "rn":
        return _canonical_half(_widen(a) * _widen(b))
    product = to_f64(kind, a) * to_f64(kind, b)
    return canonical(FORMATS[kind], narrow(kind, product, rounding))


def fma(kind: str, a: Bits, b: Bits, c: Bits, rounding: str) -> Bits:
    """Multiply and add, rounding once."""
    if kind == "f32" and rounding == "rn":
        return _fma_f32(a.view(np.float32), b.view(np.float32), c.view(np.float32))
    product = to_f64(kind, a) * to_f64(kind, b)  # exact: 48 bits at most
    if kind == "f16" and rounding == "rn":
        # Near half a unit of the addend the product is close enough to it for an exact sum.
        return _canonical_half(product + to_f64(kind, c))
    total = sum_to_odd(product, to_f64(kind, c), rounding)
    return canonical(FORMATS[kind], narrow(kind, total, rounding))


def div(a: Bits, b: Bits, rounding: str) -> Bits:
    """Divide f32 lanes, rounding once."""
    dividend, divisor = a.view(np.float32), b.view(np.float32)
    quotient = dividend / divisor
    bits = _canonical_single(quotient)
    if rounding == "rn":
        return bits
    exact = quotient.astype(np.float64) * divisor  # 48 bits: the dividend without its division
    negative = np.signbit(dividend) ^ np.signbit(divisor)
    swap = np.signbit(divisor)
    less, greater = dividend < exact, dividend > exact
    below, above = np.where(swap, greater, less), np.where(swap, less, greater)
    return step(bits, below, above, negative, rounding)


def sqrt(a: Bits, rounding: str) -> Bits:
    """Take the square root of f32 lanes, rounding once."""
    value = a.view(np.float32)
    root = np.sqrt(value)
    bits = _canonical_single(root)
    if rounding == "rn":
        return bits
    # 24 bits squared are 48, which is exact: the comparison shows the side of the root.
    square = root.astype(np.float64) * root
    return step(bits, value < square, value > square, np.signbit(value), rounding)


def _canonical_single(value: Floats) -> Bits:
    bits: Bits = value.view(np.uint32)
    nan = np.isnan(value)
    if nan.any():
        bits[nan] = _NAN
    return bits


def _canonical_half(value: Floats) -> Bits:
    return canonical(FORMATS["f16"], value.astype(np.float16).view(np.uint16))


def _widen(bits: Bits) -> Floats:
    wide: Floats = bits.view(np.float16).astype(np.float32)
    return wide


def _fma_f32(a: Floats, b: Floats, c: Floats) -> Bits:
    # The product is exact, so only the sum rounds before the result does. Rounding twice gives a
    # wrong result only if the float64 sum lies half-way between two float32 values.
    total = np.multiply(a, b, dtype=np.float64) + c
    single = total.astype(np.float32)
    suspect = (total.view(np.uint64) & _LOW) == _TIE
    small = np.abs(single) <= _NORMAL
    if small.any():
        # Subnormal results have their half-way points elsewhere; zeros are common and exact.
        suspect |= small & (total != 0)
    if suspect.any():
        where = np.nonzero(suspect)
        shape = total.shape
        # Only the suspects, a few in a million lanes of random numbers.
        factors = [np.broadcast_to(x, shape)[where].astype(np.float64) for x in (a, b, c)]
        odd = sum_to_odd(factors[0] * factors[1], factors[2], "rn")
        single[where] = odd.astype(np.float32)
    return _canonical_single(single)
