"""Every operation against exact fractions, over awkward bit patterns."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from emulator_internals import numerics as nm
from hypothesis import HealthCheck, given, settings

MODES = ["rn", "rz", "rm", "rp"]
KINDS = ["f32", "f64", "f16", "bf16"]
ONE = {"f32": 0x3F800000, "f64": 0x3FF0 << 48, "f16": 0x3C00, "bf16": 0x3F80}
few = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)


def special(value) -> bool:
    return isinstance(value, float)


def nan_of(exact, kind, lanes):
    """The NaN that an operation gives: canonical, or in f64 the last operand's, quieted."""
    if kind == "f64":
        for bits in reversed(lanes):
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
            nan_of(exact, kind, (a, c, b)) if math.isnan(value) else exact.encode(kind, value, mode)
        )
    total = x * y + z
    negative = exact.signed_zero(mode, na ^ nb, nc)
    return exact.encode(kind, total, mode, negative)


def expected_difference(exact, kind, mode, a, b):
    # The sign of a NaN is not turned around.
    if special(value := exact.decode(kind, b)[1]) and math.isnan(value):
        return nan_of(exact, kind, (a, b))
    return expected_fma(exact, kind, mode, a, ONE[kind], b ^ 1 << exact.layout[kind][0] - 1)


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


def corners(exact, kind):
    """Bits of zeros, infinities, NaNs, and of the numbers next to where formats change."""
    _, _, fraction_bits, _, _ = exact.layout[kind]
    sign = 1 << (exact.layout[kind][0] - 1)
    unit = 1 << fraction_bits
    infinity = exact.encode(kind, math.inf, "rn")
    one = exact.encode(kind, Fraction(1), "rn")
    sizes = [0, 1, unit - 1, unit, one - 1, one, one + 1, infinity - 1, infinity, infinity + 3]
    return [s | v for v in sizes for s in (0, sign)]


def hard_triples(exact, kind, rng, count=400):
    """Operands whose sum of product and addend lies a hair beside a tie, or far below a unit.

    The product is half a unit of the addend times 1 - k**2 ulp**2: rounding it, or the sum, to
    any wider format first lands on the tie.
    """
    _, _, fraction_bits, _, _ = exact.layout[kind]
    ulp = Fraction(1, 1 << fraction_bits)
    bias = exact.encode(kind, Fraction(1), "rn") >> fraction_bits
    low, high = 1 - bias, bias
    triples = []
    for _ in range(count):
        exponent = int(rng.integers(low, high)) if rng.random() < 0.7 else low
        normal = rng.random() < 0.7
        addend = (int(normal) + int(rng.integers(1 << fraction_bits)) * ulp) * Fraction(
            2
        ) ** exponent
        k = int(rng.integers(0, 4))
        half = exponent - fraction_bits - 1
        # Both factors are normal: half a subnormal's unit is a product of two small numbers.
        first = half // 2
        factors = (
            (1 + k * ulp) * Fraction(2) ** first,
            (1 - k * ulp) * Fraction(2) ** (half - first),
        )
        signs = [int(s) for s in rng.choice([-1, 1], 2)]
        values = (signs[0] * factors[0], factors[1], signs[1] * addend)
        if rng.random() < 0.3:
            # The other way round: the product is a tie, the addend as small as can be.
            odd = 2 * int(rng.integers(1 << (fraction_bits // 2))) + 1
            tie = (odd << (fraction_bits // 2 + 1)) + 1
            values = (Fraction(odd), Fraction(tie), signs[1] * Fraction(2) ** (low - fraction_bits))
        triples.append([exact.encode(kind, v, "rn") for v in values])
    return np.array(triples, exact.carrier(kind)).T


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_fma_of_all_corners(exact, kind, mode):
    special = np.array(corners(exact, kind), exact.carrier(kind))
    lanes = [v.ravel() for v in np.meshgrid(special, special, special)]
    triples = zip(*(v.tolist() for v in lanes), strict=True)
    expected = [expected_fma(exact, kind, mode, *v) for v in triples]
    exact.check(nm.fma(kind, *lanes, rounding=mode), expected, *lanes)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_fma_beside_ties(exact, kind, mode):
    lanes = hard_triples(exact, kind, np.random.default_rng(7))
    triples = zip(*(v.tolist() for v in lanes), strict=True)
    expected = [expected_fma(exact, kind, mode, *v) for v in triples]
    exact.check(nm.fma(kind, *lanes, rounding=mode), expected, *lanes)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_fma_rounds_once(exact, kind, mode):
    @few
    @given(exact.tuples(kind, 3))
    def check(lanes):
        expected = [expected_fma(exact, kind, mode, *map(int, v)) for v in zip(*lanes, strict=True)]
        exact.check(nm.fma(kind, *lanes, rounding=mode), expected, *lanes)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_add_sub_and_mul_round_once(exact, kind, mode):
    one = ONE[kind]

    @few
    @given(exact.tuples(kind, 2))
    def check(lanes):
        pairs = [tuple(map(int, v)) for v in zip(*lanes, strict=True)]
        added, subtracted = [], []
        for a, b in pairs:
            added.append(expected_fma(exact, kind, mode, a, one, b))
            subtracted.append(expected_difference(exact, kind, mode, a, b))
        exact.check(nm.add(kind, *lanes, rounding=mode), added, *lanes)
        exact.check(nm.sub(kind, *lanes, rounding=mode), subtracted, *lanes)
        products = [expected_product(exact, kind, mode, a, b) for a, b in pairs]
        exact.check(nm.mul(kind, *lanes, rounding=mode), products, *lanes)

    check()


@pytest.mark.sweep(8)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_div_and_rcp_round_once(exact, kind, mode):
    def expected(a, b):
        (na, x), (nb, y) = (exact.decode(kind, v) for v in (a, b))
        nans = [v for v in (x, y) if special(v) and math.isnan(v)]
        if nans or (x == 0 and y == 0) or (special(x) and special(y)):
            return nan_of(exact, kind, (b, a))  # of two NaNs the first
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


@pytest.mark.sweep(8)
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


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_packed_lanes_are_their_halves(exact, kind):
    half = kind[:-2]
    rng = np.random.default_rng(3)
    lanes = [rng.integers(0, 1 << 32, 500, dtype=np.uint32) for _ in range(3)]
    for ftz, relu in ((False, False), (half == "f16", True)):
        got = nm.fma(kind, *lanes, ftz=ftz, relu=relu)
        for shift in (0, 16):
            parts = [(v >> shift).astype(np.uint16) for v in lanes]
            want = nm.fma(half, *parts, ftz=ftz, relu=relu)
            assert ((got >> shift).astype(np.uint16) == want).all()
    assert nm.add(kind, lanes[0], lanes[1][:1]).shape == (500,)


def test_pairs_of_f32_are_their_halves():
    rng = np.random.default_rng(5)
    words = [rng.integers(0, 1 << 32, (500, 2), dtype=np.uint32) for _ in range(3)]
    pairs = [w.view(np.uint64)[:, 0] for w in words]
    for ftz, rounding in ((False, "rn"), (True, "rm")):
        got = nm.fma("f32x2", *pairs, ftz=ftz, rounding=rounding)
        want = nm.fma("f32", *words, ftz=ftz, rounding=rounding)
        assert (got.view(np.uint32).reshape(500, 2) == want).all()
    with pytest.raises(ValueError, match="kind must be"):
        nm.sqrt("f32x2", pairs[0])


def test_modifiers_flush_clamp_and_saturate(exact):
    def f32(*values):
        return np.array(values, np.float32).view(np.uint32)

    tiny, one = f32(1e-39, -1e-39), f32(1)
    assert nm.mul("f32", tiny, one).tolist() == tiny.tolist()
    assert nm.mul("f32", tiny, one, ftz=True).tolist() == [0, 0x80000000]
    small = f32(1.5e-38)
    assert nm.mul("f32", small, f32(0.5), ftz=True).tolist() == [0]
    values = f32(-3, -0.0, 0.5, 7, np.inf, np.nan)
    assert nm.add("f32", values, f32(0), sat=True).view(np.float32).tolist() == [0, 0, 0.5, 1, 1, 0]
    halves = np.array([0xBC00, 0x8000, 0x3C00, 0xFE01], np.uint16)
    zero, unit = np.zeros(1, np.uint16), np.array([0x3C00], np.uint16)
    assert nm.fma("f16", halves, unit, zero, relu=True).tolist() == [0, 0, 0x3C00, 0x7FFF]
    assert nm.fma("f16", halves, unit, zero, sat=True).tolist() == [0, 0, 0x3C00, 0]
    double = np.array([-0.5, 1.5, np.nan]).view(np.uint64)
    zero = np.zeros(1, np.uint64)
    assert nm.add("f64", double, zero, sat=True).view(float).tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_many_lanes_broadcast_and_stay_untouched(exact, kind):
    rng = np.random.default_rng(5)
    dtype = exact.carrier(kind)
    a = rng.integers(0, 1 << 8 * dtype.itemsize, (9, 2001), dtype=dtype)
    b, c = a[:, ::-1], np.array([0x3C00], dtype)
    before = a.copy()
    for mode in MODES:
        got = nm.fma(kind, a, b, c, rounding=mode)
        assert got.shape == a.shape
        assert got.dtype == dtype
        rows = [nm.fma(kind, a[i, ::3], b[i, ::3], c, rounding=mode) for i in range(9)]
        assert (got[:, ::3] == rows).all()
    assert (a == before).all()
    floats = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
    if kind in floats:
        same = nm.add(kind, a.view(floats[kind]), b.view(floats[kind]))
        assert (same == nm.add(kind, a, b)).all()


def test_unknown_types_and_roundings_are_named():
    bits = np.zeros(1, np.uint32)
    with pytest.raises(ValueError, match=r"kind .*'tf32'"):
        nm.add("tf32", bits, bits)
    with pytest.raises(ValueError, match=r"kind .*'bf16'"):
        nm.div("bf16", bits.astype(np.uint16), bits.astype(np.uint16))
    with pytest.raises(ValueError, match=r"rounding .*'up'"):
        nm.add("f32", bits, bits, rounding="up")
