"""The 8-bit floating-point formats e4m3 and e5m2, which exist only in pairs."""

from __future__ import annotations

import numpy as np

from culaunch._emulator.numerics.formats import Bits, Floats, unknown_kind

_NAN = 0x7F
_PRECISION = {"e4m3x2": (4, -6), "e5m2x2": (3, -14)}  # significant bits, smallest exponent


def widen_octets(source: str, a: Bits) -> Bits:
    """Convert uint16 lanes of two octets to twice as many f16 lanes; exact.

    NaN becomes the canonical f16 NaN.
    """
    octets = np.ascontiguousarray(a).view(np.uint8)
    # All 128 magnitudes are in a table; the sign is handled separately.
    values = _table(source)[octets & 0x7F]
    bits: Bits = values.astype(np.float16).view(np.uint16)
    bits |= (octets & np.uint8(0x80)).astype(np.uint16) << np.uint16(8)
    bits[np.isnan(values)] = 0x7FFF
    return bits


def narrow_octets(to: str, value: Floats, relu: bool) -> Bits:
    """Round float64 lanes to nearest even octets, saturating to the largest finite ones."""
    table = _table(to)
    finite = table[np.isfinite(table)]
    precision, min_exponent = _PRECISION[to]
    magnitude = np.minimum(np.abs(value), finite[-1])
    _, exponent = np.frexp(magnitude)
    # Rounded to a multiple of the last place: `rint` takes the even one of two that are as near.
    unit = np.maximum(exponent - 1, min_exponent) - (precision - 1)
    rounded = np.ldexp(np.rint(np.ldexp(magnitude, -unit)), unit)
    # The octet is the place of its value in the table.
    bits: Bits = np.searchsorted(finite, rounded)
    negative = np.signbit(value)
    bits = np.where(negative, 0, bits) if relu else bits | np.where(negative, 0x80, 0)
    bits = bits.astype(np.uint8)
    bits[np.isnan(value)] = _NAN
    return bits


def _table(kind: str) -> Floats:
    # The value of each octet without its sign.
    if kind not in _PRECISION:
        raise unknown_kind(kind)
    precision, min_exponent = _PRECISION[kind]
    octet = np.arange(128)
    fraction = octet & ((1 << precision - 1) - 1)
    exponent = octet >> (precision - 1)
    significand = np.where(exponent > 0, fraction + (1 << precision - 1), fraction)
    values: Floats = np.ldexp(
        significand.astype(np.float64), np.maximum(exponent, 1) + min_exponent - precision
    )
    if kind == "e4m3x2":
        values[0x7F] = np.nan  # this format has no infinities
    else:
        values[0x7C] = np.inf
        values[0x7D:] = np.nan
    return values
