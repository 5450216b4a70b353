"""Exact floating point on Python's integers and fractions, written apart from the product."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st

# width of the register, exponent bits, fraction bits, unused low bits, canonical NaN
LAYOUT = {
    "f16": (16, 5, 10, 0, 0x7FFF),
    "bf16": (16, 8, 7, 0, 0x7FFF),
    "tf32": (32, 8, 10, 13, 0x7FFFFFFF),
    "f32": (32, 8, 23, 0, 0x7FFFFFFF),
    "f64": (64, 11, 52, 0, 0xFFF8000000000000),
}
INF = math.inf


def decode(kind: str, bits: int):
    """Return (negative, value); the value is a Fraction, or float inf or nan."""
    width, exponent_bits, fraction_bits, low, _ = LAYOUT[kind]
    bits >>= low
    width -= low
    negative = bool(bits >> (width - 1))
    sign = -1 if negative else 1
    exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return negative, math.nan if fraction else sign * INF
    if exponent:
        fraction += 1 << fraction_bits
    return negative, sign * fraction * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)


def encode(kind: str, value, mode: str, zero_negative: bool = False) -> int:
    """Round a Fraction (or inf, or nan) to a format."""
    width, exponent_bits, fraction_bits, low, nan = LAYOUT[kind]
    sign_bit = 1 << (width - 1)
    infinity = ((1 << exponent_bits) - 1) << (fraction_bits + low)
    if isinstance(value, float):
        if math.isnan(value):
            return nan
        return infinity | (sign_bit if value < 0 else 0)
    if value == 0:
        return sign_bit if zero_negative else 0
    negative, size = value < 0, abs(value)
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    while Fraction(2) ** exponent > size:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    exponent = max(exponent, 1 - bias)
    count = size / Fraction(2) ** (exponent - fraction_bits)
    whole = count.numerator // count.denominator
    rest = count - whole
    half = Fraction(1, 2)
    up = {
        "rn": rest > half or (rest == half and whole % 2 == 1),
        "rna": rest >= half,
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[mode]
    whole += up
    bits = ((exponent + bias - 1) << fraction_bits) + whole
    if bits >= infinity >> low:
        outwards = mode in ("rn", "rna") or ((mode == "rm") == negative and mode != "rz")
        bits = (infinity >> low) - (not outwards)
    return (bits << low) | (sign_bit if negative else 0)


def flush(kind: str, bits: int) -> int:
    width, exponent_bits, fraction_bits, low, _ = LAYOUT[kind]
    exponent = (bits >> (fraction_bits + low)) & ((1 << exponent_bits) - 1)
    return bits if exponent else bits & (1 << (width - 1))


def signed_zero(mode: str, *negative: bool) -> bool:
    """Return the sign of an exact zero sum of terms with these signs."""
    return any(negative) if mode == "rm" else all(negative)


def carrier(kind: str):
    return np.dtype(f"u{LAYOUT[kind][0] // 8}")


def patterns(kind: str, size: int = 24):
    """Strategy: arrays of bit patterns with the awkward ones over-represented."""
    _width, exponent_bits, fraction_bits, low, _ = LAYOUT[kind]
    top = (1 << exponent_bits) - 1
    bias = top >> 1
    fraction = st.one_of(
        st.sampled_from(
            [
                0,
                1,
                2,
                3,
                (1 << fraction_bits) - 1,
                1 << (fraction_bits - 1),
                (1 << fraction_bits) - 2,
            ]
        ),
        st.integers(0, (1 << fraction_bits) - 1),
        st.integers(0, fraction_bits - 1).map(lambda n: 1 << n),
    )
    exponent = st.one_of(
        st.sampled_from([0, 1, 2, top - 2, top - 1, top, bias, bias + 1, bias - 1]),
        st.integers(0, top),
        st.integers(bias - fraction_bits - 3, bias + fraction_bits + 3).map(
            lambda e: min(max(e, 0), top)
        ),
    )
    one = st.builds(
        lambda s, e, f: ((s << exponent_bits | e) << fraction_bits | f) << low,
        st.integers(0, 1),
        exponent,
        fraction,
    )
    return st.lists(one, min_size=1, max_size=size).map(lambda v: np.array(v, carrier(kind)))


def tuples(kind: str, count: int):
    """Strategy: `count` arrays of one length."""

    def of_one_length(lanes):
        longest = max(map(len, lanes))
        return tuple(np.resize(v, longest) for v in lanes)

    return st.tuples(*(patterns(kind) for _ in range(count))).map(of_one_length)


def assert_lanes(got: np.ndarray, expected: list[int], *operands: np.ndarray) -> None:
    wanted = np.array(expected, got.dtype)
    wrong = np.nonzero(np.broadcast_to(got, wanted.shape) != wanted)[0]
    if len(wrong):
        i = wrong[0]
        shown = ", ".join(hex(int(np.broadcast_to(o, wanted.shape)[i])) for o in operands)
        raise AssertionError(f"f({shown}) = {int(got[i]):#x}, expected {int(wanted[i]):#x}")


@pytest.fixture(scope="session")
def exact() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(
        decode=decode,
        encode=encode,
        flush=flush,
        signed_zero=signed_zero,
        check=assert_lanes,
        carrier=carrier,
        layout=LAYOUT,
        patterns=patterns,
        tuples=tuples,
    )
