"""The approximations: ex2, lg2, sin, cos, tanh, rcp, rsqrt, sqrt and div.

Each is computed in float64 and rounded to nearest. It is at most 0.51 units in the last place from
the true value. It differs from the hardware's result by at most the ISA's bound for the hardware
plus that. Where the compiler emits several instructions for sm_80, the same steps are used here.
Division multiplies by a rounded reciprocal. Sine and cosine round the argument in turns, towards
zero.

===================  ==============================================================
instruction          the ISA's bound for the hardware
===================  ==============================================================
ex2.approx.f32       2 ulp
lg2.approx.f32       2**-22 absolute below 2, else 2 ulp
sin, cos.approx.f32  2**-20.5 absolute in [-2 pi, 2 pi]
tanh.approx.f32      2**-11 relative (f16: 2**-10.987, bf16: 2**-8)
rcp.approx.f32       1 ulp
rsqrt.approx.f32     2**-22.9 relative
sqrt.approx.f32      1 ulp
div.approx.f32       2 ulp for divisors from 2**-126 to 2**126; div.full: 2 ulp
ex2.approx.f16       2**-9.9 relative (bf16: 2**-7)
rsqrt.approx.f64     2**-52.4 relative; an H200 was within 0.51 ulp
rcp, rsqrt .ftz.f64  20 bits of the fraction, the lower word is ignored and zero
===================  ==============================================================

An H200 truncates the last two after those 20 bits. Here, 93 of 100 results are the same as on the
H200, and the others differ by one in the last kept bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.numerics.formats import (
    FORMATS,
    PACKED,
    Bits,
    Floats,
    canonical,
    flush,
    halves,
    to_f64,
    unknown_kind,
)
from culaunch._emulator.numerics.rounding import narrow, two_product

if TYPE_CHECKING:
    from collections.abc import Callable

# Like the hardware: a constant of single precision.
_PER_TURN = np.float64(np.float32(1 / (2 * np.pi)))
_LOW_WORD = np.uint64(0xFFFFFFFF)
_NAN_HIGH = np.uint64(0x7FFFFFFF00000000)
_NAN = np.uint64(0x7FFFFFFFFFFFFFFF)


def ex2(kind: str, a: Bits, *, ftz: bool = False) -> Bits:
    """Raise 2 to the power `a` (f32, f16, bf16, f16x2, bf16x2).

    Parameters
    ----------
    kind : str
        The PTX type.
    a : numpy.ndarray
        Register bits as wide as `kind`.
    ftz : bool, optional
        Replace subnormal operands and results by zeros of the same sign.

    Returns
    -------
    numpy.ndarray
        Bits; NaN is canonical.
    """
    return _apply(kind, a, np.exp2, ftz)


def lg2(kind: str, a: Bits, *, ftz: bool = False) -> Bits:
    """Take the logarithm to base 2 (f32): -infinity of zeros, NaN of negative numbers."""
    return _apply(kind, a, np.log2, ftz)


def sin(kind: str, a: Bits, *, ftz: bool = False) -> Bits:
    """Take the sine of radians (f32): NaN of infinities."""
    return _apply(kind, a, lambda x: np.sin(_turns(x)), ftz)


def cos(kind: str, a: Bits, *, ftz: bool = False) -> Bits:
    """Take the cosine of radians (f32): NaN of infinities."""
    return _apply(kind, a, lambda x: np.cos(_turns(x)), ftz)


def tanh(kind: str, a: Bits) -> Bits:
    """Take the hyperbolic tangent (f32, f16, bf16, f16x2, bf16x2); subnormals are kept."""
    return _apply(kind, a, np.tanh, False)


def rcp_approx(kind: str, a: Bits, *, ftz: bool = False) -> Bits:
    """Return 1 / `a` (f32; f64 only as ``rcp.approx.ftz.f64``)."""
    if kind == "f64":
        return _upper_word(a, np.reciprocal)
    return _apply(kind, a, np.reciprocal, ftz)


def rsqrt_approx(kind: str, a: Bits, *, ftz: bool = False) -> Bits:
    """Return 1 / sqrt(`a`) (f32, f64; ``rsqrt.approx.ftz.f64`` is the coarse one of 20 bits)."""
    if kind == "f64":
        return _upper_word(a, lambda x: 1 / np.sqrt(x)) if ftz else _rsqrt_f64(a)
    return _apply(kind, a, lambda x: 1 / np.sqrt(x), ftz)


def sqrt_approx(kind: str, a: Bits, *, ftz: bool = False) -> Bits:
    """Take the square root (f32)."""
    return _apply(kind, a, np.sqrt, ftz)


@np.errstate(all="ignore")
def div_approx(a: Bits, b: Bits, *, ftz: bool = False) -> Bits:
    """Divide f32 lanes as ``div.approx`` does.

    A divisor above 2**126 gives zero, or NaN for an infinite dividend: its reciprocal, a
    subnormal, is flushed.
    """
    return _divide(a, b, ftz, full=False)


@np.errstate(all="ignore")
def div_full(a: Bits, b: Bits, *, ftz: bool = False) -> Bits:
    """Divide f32 lanes as ``div.full`` does, over the full range of divisors."""
    return _divide(a, b, ftz, full=True)


@np.errstate(all="ignore")
def _apply(kind: str, a: Bits, function: Callable[[Floats], Floats], ftz: bool) -> Bits:
    if kind in PACKED:
        return _apply(PACKED[kind], halves(a), function, ftz).view(np.uint32)
    if kind not in ("f32", "f16", "bf16"):
        raise unknown_kind(kind)
    fmt = FORMATS[kind]
    a = a.view(fmt.carrier)
    if ftz:
        a = flush(fmt, a)
    result = canonical(fmt, narrow(kind, function(to_f64(kind, a))))
    return flush(fmt, result) if ftz else result


def _turns(x: Floats) -> Floats:
    # Round the turns like the hardware's range reduction, to lose the same accuracy for large
    # angles.
    rounded = to_f64("f32", narrow("f32", x * _PER_TURN, "rz"))
    angle: Floats = np.fmod(rounded, 1) * (2 * np.pi)
    return angle


def _divide(a: Bits, b: Bits, ftz: bool, full: bool) -> Bits:
    fmt = FORMATS["f32"]
    a, b = a.view(np.uint32), b.view(np.uint32)
    if ftz:
        a, b = flush(fmt, a), flush(fmt, b)
    x, y = a.view(np.float32), b.view(np.float32)
    size = np.abs(y)
    # The reciprocal of a subnormal divisor overflows: both operands are scaled, as compiled code
    # does. A power of two changes nothing else.
    scale = np.where(size < np.float32(2.0**-126), np.float32(2.0**24), np.float32(1))
    if full:
        scale = np.where(size > np.float32(2.0**126), np.float32(0.25), scale)
    reciprocal = flush(fmt, np.reciprocal(y * scale).view(np.uint32)).view(np.float32)
    result = canonical(fmt, (x * scale * reciprocal).view(np.uint32))
    return flush(fmt, result) if ftz else result


@np.errstate(all="ignore")
def _rsqrt_f64(a: Bits) -> Bits:
    """Return 1 / sqrt(`a`) of doubles within 0.51 ulp: NaN, canonical, of negative numbers."""
    x = a.view(np.float64)
    # By an even power of two into [0.5, 2): no product there is too small for its exact error.
    fraction, exponent = np.frexp(x)
    odd = exponent & 1
    fraction, exponent = np.ldexp(fraction, odd), exponent - odd
    guess = 1 / np.sqrt(fraction)
    # One step of Newton's, with the error of the guess taken exactly.
    square, square_error = two_product(guess, guess)
    product, product_error = two_product(fraction, square)
    missing = (1 - product) - product_error - fraction * square_error
    result = np.ldexp(guess + guess * missing / 2, -exponent // 2)
    # Zeros, infinities and negative numbers have exact answers, which the scaling would spoil.
    result = np.where((x > 0) & (x < np.inf), result, 1 / np.sqrt(x))
    return np.where(np.isnan(result), _NAN, result.view(np.uint64))


@np.errstate(all="ignore")
def _upper_word(a: Bits, function: Callable[[Floats], Floats]) -> Bits:
    fmt = FORMATS["f64"]
    # A NaN with the upper word of an infinity is an infinity here.
    operand = flush(fmt, a.view(np.uint64) & ~_LOW_WORD)
    value = function(operand.view(np.float64))
    return np.where(np.isnan(value), _NAN_HIGH, flush(fmt, value.view(np.uint64) & ~_LOW_WORD))
