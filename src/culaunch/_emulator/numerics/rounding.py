"""Rounding an exact result once, in any direction, with float64 arithmetic.

Every operation on formats up to f32 has a result that is either exact in float64 or the sum of a
float64 and a smaller error. This pair is first rounded *to odd* (inexact results get an odd last
bit). After that, a second rounding to 51 bits or fewer has the same result as rounding the exact
value. See Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums" (2008).
"""

from __future__ import annotations

import numpy as np

from culaunch._emulator.numerics.formats import FORMATS, Bits, Floats, Mask

#: The words of PTX: to nearest even, to zero, down, up, and to nearest with ties away from zero.
#: The last four round to an integer.
ROUNDINGS = frozenset(("rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"))

_SIGN = np.uint32(0x80000000)
_INFINITY = np.uint32(0x7F800000)
_QUIET = np.uint32(0x00400000)


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return ``a + b`` and its exact rounding error (NaN when the sum is not finite)."""
    s = a + b
    # Knuth's two-sum: exact in any order of magnitudes, without a branch.
    part = s - a
    return s, (a - (s - part)) + (b - part)


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return ``a * b`` and its exact rounding error.

    Both factors must be zero or between 2**-450 and 2**450 in magnitude. Then no part of the
    product overflows or loses bits to subnormals.
    """
    # Dekker's product: the halves of 26 bits multiply exactly, and what p lacks is summed from the
    # largest term on.
    p = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    return p, error


def to_odd(rounded: Floats, error: Floats) -> Floats:
    """Round ``rounded + error`` to odd, in place; `rounded` is the nearest float64."""
    bits = rounded.view(np.int64)
    # An inexact result whose last bit is even moves to its odd neighbor in the direction of the
    # error. An odd result stays: its last bit already says that something is missing.
    even = (np.abs(error) > 0) & ((bits & 1) == 0)
    inwards = (error > 0) != (rounded > 0)
    bits += even
    bits -= 2 * (even & inwards)
    return rounded


def sum_to_odd(a: Floats, b: Floats, rounding: str) -> Floats:
    """Return ``a + b`` rounded to odd, with a zero's sign as `rounding` asks."""
    odd = to_odd(*two_sum(a, b))
    return zero_sign(odd, a, b) if rounding == "rm" else odd


def zero_sign(s: Floats, a: Floats, b: Floats) -> Floats:
    """Give exact zero sums of `a` and `b` the sign that rounding down gives them."""
    negative = (s == 0) & (np.signbit(a) | np.signbit(b))
    return np.where(negative, -0.0, s)


def step(bits: Bits, below: Mask, above: Mask, negative: Mask, rounding: str) -> Bits:
    """Turn results rounded to nearest into results rounded as `rounding` says.

    Parameters
    ----------
    bits : numpy.ndarray
        The nearest results, as sign and magnitude in unsigned integers.
    below, above : numpy.ndarray of bool
        Where the exact value is less, or greater, than the rounded one.
    negative : numpy.ndarray of bool
        Where the exact value is negative.
    rounding : {"rn", "rz", "rm", "rp"}
        The rounding wanted.
    """
    if rounding == "rn":
        return bits
    one = bits.dtype.type(1)
    if rounding == "rz":
        # Magnitude and sign: one less in the integer is one step towards zero, one more away from
        # it.
        inwards = np.where(negative, above, below)
        inner: Bits = bits - inwards.astype(bits.dtype)
        return inner
    if rounding == "rm":
        stepped = np.where(negative, bits + one, bits - one)
        return np.where(below, stepped, bits)
    if rounding == "rp":
        stepped = np.where(negative, bits - one, bits + one)
        return np.where(above, stepped, bits)
    raise unknown_rounding(rounding)


def narrow(kind: str, value: Floats, rounding: str = "rn") -> Bits:
    """Round float64 values (exact, or rounded to odd) once to a smaller format.

    A NaN becomes some NaN of that format; callers make it canonical.

    Parameters
    ----------
    kind : {"f32", "f16", "bf16", "tf32"}
        The format.
    value : numpy.ndarray of float64
        The values to round.
    rounding : {"rn", "rz", "rm", "rp", "rna"}
        ``rna`` rounds ties away from zero; only bf16 and tf32 have it.
    """
    if kind in ("bf16", "tf32"):
        return cut(kind, _single_to_odd(value), rounding)
    nearest: Floats = value.astype(np.float32 if kind == "f32" else np.float16)
    bits: Bits = nearest.view(FORMATS[kind].carrier)
    if rounding == "rn":
        return bits
    # The nearest one is known, and float64 tells on which side of it the value lies.
    exact = nearest.astype(np.float64)
    return step(bits, value < exact, value > exact, np.signbit(value), rounding)


def cut(kind: str, bits: Bits, rounding: str) -> Bits:
    """Round f32 bits to bf16 or tf32, which differ from f32 only in the fraction's length.

    The carry of a full fraction moves into the exponent, and at last into infinity, by itself.
    """
    unit = np.uint32(16 if kind == "bf16" else 13)
    below = np.uint32((1 << int(unit)) - 1)
    half = np.uint32(1 << int(unit) - 1)
    if rounding == "rn":
        rounded = bits + (half - np.uint32(1) + ((bits >> unit) & np.uint32(1)))
    elif rounding == "rna":
        rounded = bits + half
    elif rounding == "rz":
        rounded = bits
    elif rounding in ("rm", "rp"):
        away = (bits >= _SIGN) == (rounding == "rm")
        rounded = np.where(away, bits + below, bits)
    else:
        raise unknown_rounding(rounding)
    nan = (bits & ~_SIGN) > _INFINITY
    if nan.any():
        # rna to tf32 is a sequence of integer instructions, which makes no NaN quiet.
        kept = bits if rounding == "rna" and kind == "tf32" else bits | _QUIET
        rounded = np.where(nan, kept, rounded)
    short: Bits = rounded & ~below
    return short if kind == "tf32" else (short >> unit).astype(np.uint16)


def unknown_rounding(rounding: str) -> ValueError:
    """Make the error for a rounding that an operation does not have."""
    return ValueError(f"rounding must be one of rn, rz, rm, rp (got {rounding!r})")


def _single_to_odd(value: Floats) -> Bits:
    nearest = value.astype(np.float32)
    exact = nearest.astype(np.float64)
    # Cut towards zero; then the last bit is set if anything was cut.
    bits: Bits = nearest.view(np.uint32) - (np.abs(exact) > np.abs(value))
    return bits | ((exact < value) | (exact > value))


def _split(a: Floats) -> tuple[Floats, Floats]:
    # Veltkamp: two halves of 26 bits each.
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return high, a - high
