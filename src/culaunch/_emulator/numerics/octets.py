"""The floating-point formats of 8 bits and fewer, which exist only in pairs."""

from __future__ import annotations

import numpy as np

from culaunch._emulator.numerics.formats import Bits, Floats, unknown_kind

_NAN = 0x7F
# All bits, significant bits, smallest exponent.
_PRECISION = {
    "e4m3x2": (8, 4, -6), "e5m2x2": (8, 3, -14),
    "e2m3x2": (6, 4, 0), "e3m2x2": (6, 3, -2), "e2m1x2": (4, 2, 0),
}  # fmt: skip
NARROW_PAIRS = frozenset(_PRECISION)


def widen_octets(source: str, a: Bits) -> Bits:
    """Convert lanes of two numbers to twice as many f16 lanes; exact.

    NaN becomes the canonical f16 NaN.
    """
    octets = np.ascontiguousarray(a).view(np.uint8)
    if source == "e2m1x2":
        octets = np.stack([octets & 15, octets >> 4], axis=-1).reshape(-1)
    # All magnitudes are in a table; the sign is handled separately.
    table = _table(source)
    values = table[octets & (table.shape[0] - 1)]
    bits: Bits = values.astype(np.float16).view(np.uint16)
    bits |= np.where(octets & table.shape[0], np.uint16(0x8000), np.uint16(0))
    bits[np.isnan(values)] = 0x7FFF
    return bits


def narrow_octets(to: str, value: Floats, relu: bool) -> Bits:
    """Round float64 lanes to nearest even, saturating to the largest finite number."""
    table = _table(to)
    finite = table[np.isfinite(table)]
    width, precision, min_exponent = _PRECISION[to]
    magnitude = np.minimum(np.abs(value), finite[-1])
    _, exponent = np.frexp(magnitude)
    # Rounded to a multiple of the last place: `rint` takes the even one of two that are as near.
    unit = np.maximum(exponent - 1, min_exponent) - (precision - 1)
    rounded = np.ldexp(np.rint(np.ldexp(magnitude, -unit)), unit)
    # The octet is the place of its value in the table.
    bits: Bits = np.searchsorted(finite, rounded)
    negative = np.signbit(value)
    bits = np.where(negative, 0, bits) if relu else bits | np.where(negative, 1 << width - 1, 0)
    bits = bits.astype(np.uint8)
    # The formats without a NaN have their largest number instead.
    bits[np.isnan(value)] = _NAN if width == 8 else table.shape[0] - 1
    return bits


def pair_octets(to: str, upper: Bits, lower: Bits) -> Bits:
    """Return two numbers of `narrow_octets` or `to_powers` as one."""
    dtype, width = (np.uint8, 4) if to == "e2m1x2" else (np.uint16, 8)
    pair: Bits = upper.astype(dtype) << dtype(width) | lower
    return pair


def to_powers(value: Floats, *, up: bool, satfinite: bool) -> Bits:
    """Round the magnitudes of float64 lanes to powers of two, as ue8m0."""
    fraction, exponent = np.frexp(np.abs(value))
    # The fraction is from 1/2 to 1.
    power = np.where((fraction > 0.5) & up, exponent, exponent - 1)
    power = np.where(value == 0, -127, np.clip(power, -127, 128))
    power = np.where(np.isinf(value), 128, power)
    bits: Bits = np.where(satfinite, np.minimum(power, 127), power) + 127
    return np.where(np.isnan(value), 255, bits).astype(np.uint8)


def powers_to_bf16(a: Bits) -> Bits:
    """Convert uint16 lanes of two ue8m0 to twice as many bf16 lanes; exact."""
    octets = np.ascontiguousarray(a).view(np.uint8).astype(np.uint16)
    bits: Bits = np.where(octets == 0, np.uint16(0x40), octets << np.uint16(7))
    return np.where(octets == 255, np.uint16(0x7FFF), bits)


def _table(kind: str) -> Floats:
    # The value of each octet without its sign.
    if kind not in _PRECISION:
        raise unknown_kind(kind)
    width, precision, min_exponent = _PRECISION[kind]
    octet = np.arange(1 << width - 1)
    fraction = octet & ((1 << precision - 1) - 1)
    exponent = octet >> (precision - 1)
    significand = np.where(exponent > 0, fraction + (1 << precision - 1), fraction)
    values: Floats = np.ldexp(
        significand.astype(np.float64), np.maximum(exponent, 1) + min_exponent - precision
    )
    if kind == "e4m3x2":
        values[0x7F] = np.nan  # this format has no infinities
    elif kind == "e5m2x2":
        values[0x7C] = np.inf
        values[0x7D:] = np.nan
    return values
