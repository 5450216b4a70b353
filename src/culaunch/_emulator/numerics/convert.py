"""cvt of PTX: between integers and floating-point formats of every width."""

from __future__ import annotations

import numpy as np

from culaunch._emulator.numerics.formats import (
    FORMATS,
    Bits,
    Floats,
    bf16_to_f32,
    canonical,
    flush,
    halves,
    is_nan,
    saturate,
    to_f64,
    unknown_kind,
)
from culaunch._emulator.numerics.formats import relu as _relu
from culaunch._emulator.numerics.octets import (
    NARROW_PAIRS,
    narrow_octets,
    pair_octets,
    powers_to_bf16,
    widen_octets,
)
from culaunch._emulator.numerics.rounding import cut, narrow, step, to_odd, two_sum

_INTEGERS = {
    sign + str(width): np.dtype(f"{'i' if sign == 's' else 'u'}{width // 8}")
    for sign in "su"
    for width in (8, 16, 32, 64)
}
_QUIET = np.uint64(1 << 51)
_PAYLOAD = np.uint64((1 << 52) - 1)
_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@np.errstate(all="ignore")
def cvt(
    to: str,
    source: str,
    a: Bits,
    *,
    rounding: str | None = None,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Bits:
    """Convert registers from one type to another.

    Parameters
    ----------
    to, source : str
        The PTX types: ``s8`` to ``s64``, ``u8`` to ``u64``, ``f16``, ``bf16``, ``tf32``, ``f32``,
        ``f64``. Also between ``f16x2`` and pairs of 8 bits and fewer, and from
        ``ue8m0x2`` to ``bf16x2``.
    a : numpy.ndarray
        Unsigned integers exactly as wide as `source`. The caller truncates a wider register:
        ``bits.astype(numpy.uint8)``.
    rounding : {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"}, optional
        As in the instruction. None is for exact conversions, or means ``rn``. Integer roundings
        also apply from a floating-point type to itself.
    ftz : bool, optional
        Replace f32 subnormals, in source and result, by zeros of the same sign.
    sat : bool, optional
        Integers: clamp to the range of `to` (conversions from floating point always do). Floating
        point: clamp to [0, 1], and NaN to +0.
    relu : bool, optional
        Negative results become +0.
    satfinite : bool, optional
        Replace results that are too large by the largest finite number instead of infinity.

    Returns
    -------
    numpy.ndarray
        Unsigned integers exactly as wide as `to`. The caller sign- or zero-extends them for a wider
        destination register.

    Notes
    -----
    As an integer, NaN becomes 0, or only the highest bit if the source is f64 or the integer has 64
    bits. A NaN to or from f64 keeps its sign and the part of its payload that fits, and becomes
    quiet. As tf32 it is truncated. In every other format it is the canonical NaN.
    """
    if to in _INTEGERS:
        if source in _INTEGERS:
            return _between_integers(to, source, a, sat)
        return _to_integer(to, source, a, rounding or "rzi", ftz)
    if to in NARROW_PAIRS and source == "f16x2":
        octets = narrow_octets(to, to_f64("f16", halves(a)), relu)
        return pair_octets(to, octets[1::2], octets[::2])
    if to == "bf16x2" and source == "ue8m0x2":
        return powers_to_bf16(a).view(np.uint32)
    if to == "f16x2" and source in NARROW_PAIRS:
        wide = widen_octets(source, a)
        return np.where(wide & 0x8000, 0, wide).view(np.uint32) if relu else wide.view(np.uint32)
    if to not in FORMATS:
        raise unknown_kind(to)
    if source in _INTEGERS:
        result = _from_integer(to, source, a, rounding or "rn")
    else:
        result = _between_floats(to, source, a, rounding, ftz)
    return _finish(to, result, sat, relu, satfinite)


def _between_integers(to: str, source: str, a: Bits, sat: bool) -> Bits:
    target = _INTEGERS[to]
    value = a.view(_INTEGERS[source])
    if sat:
        have, want = np.iinfo(value.dtype), np.iinfo(target)
        # Limits within both types, so they fit the clamped one.
        value = np.clip(value, max(have.min, want.min), min(have.max, want.max))
    return value.astype(target).view(f"u{target.itemsize}")


def _to_integer(to: str, source: str, a: Bits, rounding: str, ftz: bool) -> Bits:
    if source not in FORMATS:
        raise unknown_kind(source)
    if rounding not in _INTEGRAL:
        raise ValueError(f"rounding must be one of rni, rzi, rmi, rpi (got {rounding!r})")
    target = _INTEGERS[to]
    a = a.view(FORMATS[source].carrier)
    if ftz and source == "f32":
        a = flush(FORMATS["f32"], a)
    # First to a whole number, exactly; then into the integer type, if it fits or is clamped.
    whole = _INTEGRAL[rounding](_native(source, a))
    limits = np.iinfo(target)
    # Both bounds are exact in every format: zero or powers of two.
    inside = (whole >= limits.min) & (whole < 2.0 * (limits.max // 2 + 1))
    result = whole.astype(target)
    if not inside.all():
        width = 8 * target.itemsize
        outside = ~inside
        nan = 1 << width - 1 if source == "f64" or width == 64 else 0
        beyond = whole[outside]
        clamped = np.where(beyond < 0, target.type(limits.min), target.type(limits.max))
        invalid = np.array(nan, f"u{target.itemsize}").view(target)
        result[outside] = np.where(np.isnan(beyond), invalid, clamped)
    bits: Bits = result.view(f"u{target.itemsize}")
    return bits


def _from_integer(to: str, source: str, a: Bits, rounding: str) -> Bits:
    value = a.view(_INTEGERS[source])
    # Here NumPy's conversion rounds once, to nearest even, as cvt does.
    if rounding == "rn" and to in ("f32", "f64"):
        return value.astype(to.replace("f", "float")).view(FORMATS[to].carrier)
    if value.dtype.itemsize < 8:
        # Up to 32 bits fit in float64's 53.
        exact = value.astype(np.float64)
        return exact.view(np.uint64) if to == "f64" else narrow(to, exact, rounding)
    # 64 bits do not: they are the sum of two halves that do, with its error.
    high = (value >> value.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (value & value.dtype.type(0xFFFFFFFF)).astype(np.float64)
    total, error = two_sum(high, low)
    if to == "f64":
        bits = total.view(np.uint64)
        return step(bits, error < 0, error > 0, np.signbit(total), rounding)
    return narrow(to, to_odd(total, error), rounding)


def _between_floats(to: str, source: str, a: Bits, rounding: str | None, ftz: bool) -> Bits:
    if source not in FORMATS:
        raise unknown_kind(source)
    fmt = FORMATS[to]
    a = a.view(FORMATS[source].carrier)
    if ftz and source == "f32":
        a = flush(FORMATS["f32"], a)
    if to == source:
        result = a.copy()
        if rounding in _INTEGRAL:
            value = to_f64(to, a)
            whole = _INTEGRAL[rounding](value)
            # Rounding to an integer is exact in every format that holds the number itself.
            result = whole.view(np.uint64) if to == "f64" else narrow(to, whole)
    elif to == "f64":
        wide = to_f64(source, a).view(np.uint64)
        return np.where(is_nan(fmt, wide), wide | _QUIET, wide)
    elif to == "f32" and source != "f64":
        result = _native(source, a).view(np.uint32).copy()
    elif source == "f32" and to in ("bf16", "tf32"):
        result = cut(to, a, rounding or "rn")
    elif source == "f32" and to == "f16" and rounding in (None, "rn"):
        result = a.view(np.float32).astype(np.float16).view(np.uint16)
    else:
        result = narrow(to, to_f64(source, a), rounding or "rn")
    if source == "f64" and to != "f64":
        result = _narrow_nans(to, a, result)
    # A NaN keeps its upper bits as tf32, for which sm_80 has no instruction of its own.
    elif to not in ("f64", "tf32"):
        result = canonical(fmt, result)
    return flush(fmt, result) if ftz and to == "f32" else result


def _narrow_nans(to: str, a: Bits, result: Bits) -> Bits:
    # From f64: the sign, the upper bits of the payload, and the quiet bit.
    nan = is_nan(FORMATS["f64"], a)
    if not nan.any():
        return result
    fmt = FORMATS[to]
    # All ones in the exponent, and the highest bit of the fraction, which makes a NaN quiet.
    quiet = fmt.infinity >> 1 & ~fmt.infinity | fmt.infinity
    cut_off = np.uint64(53 - fmt.precision)
    payload = (a & _PAYLOAD) >> cut_off
    sign = np.where(a >> np.uint64(63), np.uint64(fmt.sign), np.uint64(0))
    bits = (payload | sign | np.uint64(quiet)).astype(fmt.carrier)
    return np.where(nan, bits, result)


def _native(source: str, a: Bits) -> Floats:
    # The values, in float32 or for f64 in float64.
    if source == "f64":
        return a.view(np.float64)
    if source == "bf16":
        return bf16_to_f32(a)
    if source == "f16":
        return a.view(np.float16).astype(np.float32)
    return a.view(np.float32)


def _finish(to: str, result: Bits, sat: bool, clamp: bool, satfinite: bool) -> Bits:
    fmt = FORMATS[to]
    if sat:
        result = saturate(fmt, result)
    if clamp:
        result = _relu(fmt, result)
    if satfinite:
        unit = fmt.carrier.type
        # The largest finite number is a constant below infinity, for either sign.
        infinite = (result & unit(fmt.magnitude)) == unit(fmt.infinity)
        result = np.where(infinite, result - unit(fmt.infinity - fmt.largest), result)
    return result
