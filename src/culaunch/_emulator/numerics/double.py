"""Arithmetic on f64 lanes, in every rounding, without a fused multiply-add to lean on.

float64 itself rounds to nearest; the sign of its error then determines the other roundings. A few
lanes have exponents that are too extreme to compute the error in float64. They go through exact
integers (`exact`), one by one.

NaNs keep their sign and payload, as the PTX ISA specifies for double precision. Of several NaN
operands, the last one wins, quieted. In ``a * b + c`` the order is b, then c, then a. In a
division, which is a sequence of instructions, the first one wins. An invalid operation gives
0xfff8000000000000.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.numerics import exact
from culaunch._emulator.numerics.rounding import step, to_odd, two_product, two_sum, zero_sign

if TYPE_CHECKING:
    from culaunch._emulator.numerics.formats import Bits, Floats, Mask

_QUIET = np.uint64(0x0008000000000000)
_MAGNITUDE = np.uint64(0x7FFFFFFFFFFFFFFF)
_INVALID = np.uint64(0xFFF8000000000000)


def add(a: Bits, b: Bits, rounding: str) -> Bits:
    """Add, rounding once."""
    x, y = a.view(np.float64), b.view(np.float64)
    total = x + y
    if rounding == "rn":
        return _with_nans(total, x, y)
    return _with_nans(_directed_sum(x, y, total, rounding), x, y)


def sub(a: Bits, b: Bits, rounding: str) -> Bits:
    """Subtract, rounding once. The sign of a NaN is unchanged."""
    x, y = a.view(np.float64), b.view(np.float64)
    total = x - y
    if rounding == "rn":
        return _with_nans(total, x, y)
    return _with_nans(_directed_sum(x, -y, total, rounding), x, y)


def mul(a: Bits, b: Bits, rounding: str) -> Bits:
    """Multiply, rounding once."""
    x, y = a.view(np.float64), b.view(np.float64)
    product = x * y
    if rounding == "rn":
        return _with_nans(product, x, y)
    _, error = two_product(x, y)
    negative = np.signbit(x) ^ np.signbit(y)
    bits = step(product.view(np.uint64), error < 0, error > 0, negative, rounding)
    exact.repair(bits, _extreme(x, 450) | _extreme(y, 450), exact.mul, (x, y), rounding)
    return _with_nans(bits.view(np.float64), x, y)


def fma(a: Bits, b: Bits, c: Bits, rounding: str) -> Bits:
    """Multiply and add, rounding once."""
    x, y, z = a.view(np.float64), b.view(np.float64), c.view(np.float64)
    # The exact sum is `high` + `low`, and `low`, rounded to odd, is too small to mislead the
    # last addition (Boldo and Melquiond, figure 4).
    product, product_error = two_product(x, y)
    part, part_error = two_sum(z, product_error)
    high, high_error = two_sum(product, part)
    low = to_odd(*two_sum(part_error, high_error))
    total = high + low
    if rounding != "rn":
        total = _directed_sum(high, low, total, rounding)
    # A zero is exact, so it has the sign of the plain sum; the errors' sums may have lost it.
    total = np.where(total == 0, product + z, total)
    if rounding == "rm":
        total = zero_sign(total, product, z)
    if _plain(x, 450) and _plain(y, 450) and _plain(z, 1000):
        return np.ascontiguousarray(total).view(np.uint64)
    finite = np.isfinite(x) & np.isfinite(y)
    special = ~(finite & np.isfinite(z))
    # A finite product may have overflowed: an infinite addend still wins.
    total = np.where(special, np.where(finite, z, product + z), total)
    bits = total.view(np.uint64)
    exact.repair(bits, _extreme(x, 450) | _extreme(y, 450), exact.fma, (x, y, z), rounding)
    return _with_nans(bits.view(np.float64), x, z, y)


def div(a: Bits, b: Bits, rounding: str) -> Bits:
    """Divide, rounding once."""
    x, y = a.view(np.float64), b.view(np.float64)
    quotient = x / y
    if rounding == "rn":
        return _with_nans(quotient, y, x)
    product, error = two_product(quotient, y)
    rest = x - product  # exact: the product is as near as can be
    # The remainder has the quotient's error times y: dividing by a negative number turns it around.
    swap = np.signbit(y)
    below = np.where(swap, rest > error, rest < error)
    above = np.where(swap, rest < error, rest > error)
    negative = np.signbit(x) ^ swap
    bits = step(quotient.view(np.uint64), below, above, negative, rounding)
    rare = _extreme(x, 220) | _extreme(y, 220)
    exact.repair(bits, rare & (y != 0), exact.div, (x, y), rounding)
    return _with_nans(bits.view(np.float64), y, x)


def sqrt(a: Bits, rounding: str) -> Bits:
    """Take the square root, rounding once."""
    x = a.view(np.float64)
    root = np.sqrt(x)
    if rounding == "rn":
        return _with_nans(root, x)
    product, error = two_product(root, root)
    rest = x - product
    bits = step(root.view(np.uint64), rest < error, rest > error, np.signbit(x), rounding)
    exact.repair(bits, _extreme(x, 450) & (x > 0), exact.sqrt, (x,), rounding)
    return _with_nans(bits.view(np.float64), x)


def _directed_sum(x: Floats, y: Floats, total: Floats, rounding: str) -> Floats:
    # The error of a sum in one step (Dekker's fast two-sum) needs the larger operand first.
    swap = np.abs(y) > np.abs(x)
    large, small = np.where(swap, y, x), np.where(swap, x, y)
    # Unlike two_sum, this cannot overflow before the sum itself does.
    error = small - (total - large)
    overflow = np.isinf(total) & np.isfinite(x) & np.isfinite(y)
    # The exact sum is finite, and so lies inwards of the infinity.
    error = np.where(overflow, -total, error)
    bits = step(total.view(np.uint64), error < 0, error > 0, np.signbit(total), rounding)
    result: Floats = bits.view(np.float64)
    return zero_sign(result, x, y) if rounding == "rm" else result


def _extreme(x: Floats, limit: int) -> Mask:
    size = np.abs(x)
    return ((size < 2.0**-limit) & (size > 0)) | ((size > 2.0**limit) & (size < np.inf))


def _plain(x: Floats, limit: int) -> bool:
    # Whether every lane is zero or of a moderate size: two reductions, the common case.
    size = x.view(np.uint64) & _MAGNITUDE
    most, least = (np.float64(2.0**e).view(np.uint64) for e in (limit, -limit))
    if size.max(initial=0) > most:
        return False
    # A zero, less one, is the largest integer.
    return bool((size - np.uint64(1)).min(initial=most) >= least - np.uint64(1))


def _with_nans(value: Floats, *operands: Floats) -> Bits:
    bits: Bits = value.view(np.uint64)
    nan = np.isnan(value)
    if nan.any():
        # A NaN without a NaN operand comes from an invalid operation; the last operand that is one
        # wins.
        fixed = np.full(bits.shape, _INVALID)
        for operand in operands:
            quieted = operand.view(np.uint64) | _QUIET
            fixed = np.where(np.isnan(operand), quieted, fixed)
        bits = np.where(nan, fixed, bits)
    return bits
