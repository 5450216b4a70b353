"""Every operation against exact fractions, over awkward bit patterns."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings

from culaunch._emulator import _numerics as nm

MODES = ["rn", "rz", "rm", "rp"]
KINDS = ["f32", "f64", "f16", "bf16"]
few = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)


def special(value) -> bool:
    return isinstance(value, float)


def nan_of(exact, kind, lanes):
    """The NaN that an operation gives: canonical, or in f64 the first operand's, quieted."""
    if kind == "f64":
        for bits in lanes:
            if isinstance(value := exact.decode(kind, bits)[1], float) and math.isnan(value):
                return bits | 1 << 51
    return exact.layout[kind][4]


def expected_fma(exact, kind, mode, a, b, c):
    (na, x), (nb, y), (nc, z) = (exact.decode(kind, v) for v in (a, b, c))
    if special(x) or special(y) or special(z):
        fx, fy, fz = (
            v if special(v) else math.copysign(bool(v), -1 if n else 1)
            for v, n in ((x, na), (y, nb), (z, nc))
        )
        value = fx * fy + fz
        return (
            nan_of(exact, kind, (a, b, c)) if math.isnan(value) else exact.encode(kind, value, mode)
        )
    total = x * y + z
    negative = exact.signed_zero(mode, na ^ nb, nc)
    return exact.encode(kind, total, mode, negative)


def expected_product(exact, kind, mode, a, b):
    (na, x), (nb, y) = (exact.decode(kind, v) for v in (a, b))
    if special(x) or special(y):
        fx, fy = (
            v if special(v) else math.copysign(bool(v), -1 if n else 1)
            for v, n in ((x, na), (y, nb))
        )
        value = fx * fy
        return nan_of(exact, kind, (a, b)) if math.isnan(value) else exact.encode(kind, value, mode)
    return exact.encode(kind, x * y, mode, na ^ nb)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_fma_rounds_once(exact, kind, mode):
    @few
    @given(exact.tuples(kind, 3))
    def check(lanes):
        expected = [expected_fma(exact, kind, mode, *map(int, v)) for v in zip(*lanes, strict=True)]
        exact.check(nm.fma(kind, *lanes, rounding=mode), expected, *lanes)

    check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_add_sub_and_mul_round_once(exact, kind, mode):
    one = {"f32": 0x3F800000, "f64": 0x3FF0 << 48, "f16": 0x3C00, "bf16": 0x3F80}[kind]
    sign = 1 << (exact.layout[kind][0] - 1)

    @few
    @given(exact.tuples(kind, 2))
    def check(lanes):
        pairs = [tuple(map(int, v)) for v in zip(*lanes, strict=True)]
        added, subtracted = [], []
        for a, b in pairs:
            added.append(expected_fma(exact, kind, mode, a, one, b))
            subtracted.append(expected_fma(exact, kind, mode, a, one, b ^ sign))
        exact.check(nm.add(kind, *lanes, rounding=mode), added, *lanes)
        exact.check(nm.sub(kind, *lanes, rounding=mode), subtracted, *lanes)
        products = [expected_product(exact, kind, mode, a, b) for a, b in pairs]
        exact.check(nm.mul(kind, *lanes, rounding=mode), products, *lanes)

    check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_div_and_rcp_round_once(exact, kind, mode):
    def expected(a, b):
        (na, x), (nb, y) = (exact.decode(kind, v) for v in (a, b))
        nans = [v for v in (x, y) if special(v) and math.isnan(v)]
        if nans or (x == 0 and y == 0) or (special(x) and special(y)):
            return nan_of(exact, kind, (a, b))
        sign = -1 if na ^ nb else 1
        if special(x) or y == 0:
            return exact.encode(kind, sign * math.inf, mode)
        if special(y):
            return exact.encode(kind, 0, mode, na ^ nb)
        return exact.encode(kind, x / y, mode, na ^ nb)

    one = 0x3F800000 if kind == "f32" else 0x3FF0 << 48

    @few
    @given(exact.tuples(kind, 2))
    def check(lanes):
        want = [expected(*map(int, v)) for v in zip(*lanes, strict=True)]
        exact.check(nm.div(kind, *lanes, rounding=mode), want, *lanes)
        want = [expected(one, int(v)) for v in lanes[1]]
        exact.check(nm.rcp(kind, lanes[1], rounding=mode), want, lanes[1])

    check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_sqrt_rounds_once(exact, kind, mode):
    def expected(a):
        negative, x = exact.decode(kind, a)
        if special(x):
            return exact.encode(kind, x, mode) if x > 0 else nan_of(exact, kind, (a,))
        if x <= 0:
            return nan_of(exact, kind, (a,)) if x < 0 else exact.encode(kind, 0, mode, negative)
        # Hundreds of bits of the root and a sticky one: enough to decide any rounding.
        shift = 2600
        scaled = x * 2**shift
        whole = scaled.numerator // scaled.denominator
        root = math.isqrt(whole)
        value = type(x)(2 * root + (root * root != scaled), 2 ** (shift // 2 + 1))
        return exact.encode(kind, value, mode)

    @few
    @given(exact.patterns(kind, 40))
    def check(lanes):
        exact.check(nm.sqrt(kind, lanes, rounding=mode), [expected(int(v)) for v in lanes], lanes)

    check()
