"""Conversions against exact integers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from emulator_internals import numerics as nm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

INTEGERS = [s + w for s in "su" for w in ("8", "16", "32", "64")]
FLOATS = ["f16", "bf16", "f32", "f64"]
MODES = ["rn", "rz", "rm", "rp"]
few = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)


def is_nan(value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def limits(kind: str) -> tuple[int, int]:
    width = int(kind[1:])
    return (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)


def as_integer(kind: str, bits: int) -> int:
    width = int(kind[1:])
    return bits - (1 << width) if kind[0] == "s" and bits >> width - 1 else bits


def integers(kind: str):
    """Strategy: arrays of bits of integers, near powers of two more often than not."""
    width = int(kind[1:])
    near = st.builds(
        lambda e, d, sign: (sign * (1 << e) + d) % (1 << width),
        st.integers(0, width),
        st.integers(-3, 3),
        st.sampled_from([1, -1]),
    )
    ties = st.builds(
        lambda e, d: ((1 << e) + (1 << max(e - 24, 0)) + d) % (1 << width),
        st.integers(0, width),
        st.integers(-1, 1),
    )
    any_of = st.one_of(near, ties, st.integers(0, (1 << width) - 1))
    return st.lists(any_of, min_size=1, max_size=24).map(lambda v: np.array(v, f"u{width // 8}"))


@pytest.mark.sweep(8)
@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("to", INTEGERS)
def test_integers_wrap_or_saturate(exact, to, source):
    @settings(few, max_examples=10)
    @given(integers(source))
    def check(lanes):
        values = [as_integer(source, int(v)) for v in lanes]
        wrapped = [v % (1 << int(to[1:])) for v in values]
        exact.check(nm.cvt(to, source, lanes), wrapped, lanes)
        low, high = limits(to)
        clamped = [min(max(v, low), high) % (1 << int(to[1:])) for v in values]
        exact.check(nm.cvt(to, source, lanes, sat=True), clamped, lanes)

    check()


@pytest.mark.sweep(8)
@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("to", FLOATS)
def test_an_integer_becomes_the_nearest_float_in_each_direction(exact, to, source):
    @settings(few, max_examples=15)
    @given(integers(source), st.sampled_from(MODES))
    def check(lanes, mode):
        want = [exact.encode(to, Fraction(as_integer(source, int(v))), mode) for v in lanes]
        exact.check(nm.cvt(to, source, lanes, rounding=mode), want, lanes)

    check()


@pytest.mark.sweep(8)
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("to", INTEGERS)
def test_a_float_becomes_a_clamped_integer(exact, to, source):
    rounding = {
        "rni": lambda x: round(x),  # Python rounds ties to even
        "rzi": math.trunc,
        "rmi": math.floor,
        "rpi": math.ceil,
    }
    low, high = limits(to)
    width = int(to[1:])

    def expected(bits, mode):
        _, value = exact.decode(source, bits)
        if isinstance(value, float):
            if math.isnan(value):
                return 1 << width - 1 if source == "f64" or width == 64 else 0
            whole = high if value > 0 else low
        else:
            whole = rounding[mode](value)
        return min(max(whole, low), high) % (1 << width)

    @settings(few, max_examples=15)
    @given(exact.patterns(source), st.sampled_from(list(rounding)))
    def check(lanes, mode):
        want = [expected(int(v), mode) for v in lanes]
        exact.check(nm.cvt(to, source, lanes, rounding=mode), want, lanes)

    check()


def test_the_edges_of_64_bit_integers():
    edges = np.array([2.0**63, -(2.0**63), 2.0**64, np.nextafter(2.0**63, 0), -1.5, np.inf])
    bits = edges.view(np.uint64)
    top = 0x7FFFFFFFFFFFFFFF
    want = [top, 1 << 63, top, int(np.nextafter(2.0**63, 0)), (1 << 64) - 1, top]
    assert nm.cvt("s64", "f64", bits, rounding="rzi").tolist() == want
    everything = (1 << 64) - 1
    want = [1 << 63, 0, everything, int(np.nextafter(2.0**63, 0)), 0, everything]
    assert nm.cvt("u64", "f64", bits, rounding="rzi").tolist() == want


@pytest.mark.sweep(8)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("to", FLOATS)
def test_floats_round_once(exact, to, source, mode):
    def expected(bits):
        negative, value = exact.decode(source, bits)
        if isinstance(value, float) and math.isnan(value):
            return None if "f64" in (to, source) else exact.layout[to][4]
        return exact.encode(to, value, mode, negative)

    @settings(few, max_examples=20)
    @given(exact.patterns(source))
    def check(lanes):
        want = [expected(int(v)) for v in lanes]
        got = nm.cvt(to, source, lanes, rounding=mode)
        # A NaN to or from f64 keeps its payload: only that it is one is checked.
        want = [
            int(g) if w is None and is_nan(exact.decode(to, int(g))[1]) else w
            for g, w in zip(got, want, strict=True)
        ]
        exact.check(got, want, lanes)

    if to != source:
        check()


@pytest.mark.parametrize("mode", ["rn", "rz", "rna"])
def test_tf32_keeps_ten_fraction_bits(exact, mode):
    @few
    @given(exact.patterns("f32"))
    def check(lanes):
        lanes = lanes[~np.isnan(lanes.view(np.float32))]
        want = []
        for bits in lanes.tolist():
            negative, value = exact.decode("f32", bits)
            want.append(exact.encode("tf32", value, mode, negative))
        got = nm.cvt("tf32", "f32", lanes, rounding=mode)
        exact.check(got, want, lanes)
        assert not (got & 0x1FFF).any()

    check()


def test_a_nan_stays_one_in_tf32():
    lanes = np.array([0x7FFFFFFF, 0x7FC00000, 0xFFC00000, 0x7F802000], np.uint32)
    got = nm.cvt("tf32", "f32", lanes, rounding="rna")
    assert np.isnan(got.view(np.float32)).all()
    assert got[0] == 0x7FFFE000


def test_every_half_widens_exactly():
    bits = np.arange(65536, dtype=np.uint16)
    want = bits.view(np.float16).astype(np.float32)
    got = nm.cvt("f32", "f16", bits)
    numbers = ~np.isnan(want)
    assert (got[numbers] == want.view(np.uint32)[numbers]).all()
    assert (got[~numbers] == 0x7FFFFFFF).all()
    got = nm.cvt("f32", "bf16", bits)
    numbers = ~np.isnan(got.view(np.float32))
    assert (got[numbers] == bits.astype(np.uint32)[numbers] << 16).all()
    assert (got[~numbers] == 0x7FFFFFFF).all()


@pytest.mark.slow
@given(hnp.arrays(np.uint32, st.integers(1, 40)))
def test_bf16_agrees_with_ml_dtypes(lanes):
    lanes = lanes[~np.isnan(lanes.view(np.float32))]
    want = lanes.view(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    assert (nm.cvt("bf16", "f32", lanes, rounding="rn") == want).all()


@pytest.mark.parametrize("kind", FLOATS)
def test_integer_rounding_within_a_format(exact, kind):
    @few
    @given(exact.patterns(kind))
    def check(lanes):
        lanes = np.array(
            [v for v in lanes.tolist() if not isinstance(exact.decode(kind, v)[1], float)],
            lanes.dtype,
        )
        for mode, function in {
            "rni": round,
            "rzi": math.trunc,
            "rmi": math.floor,
            "rpi": math.ceil,
        }.items():
            want = []
            for bits in lanes.tolist():
                negative, value = exact.decode(kind, bits)
                want.append(exact.encode(kind, Fraction(function(value)), "rn", negative))
            exact.check(nm.cvt(kind, kind, lanes, rounding=mode), want, lanes)

    check()


def test_modifiers_of_floats():
    singles = np.array([-1.0, -0.0, 0.25, 2.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    bits = singles.view(np.uint32)
    got = nm.cvt("f32", "f32", bits, sat=True).view(np.float32)
    assert got.tolist() == [0, 0, 0.25, 1, 1, 0, 0, float(np.float32(1e-40))]
    assert not np.signbit(got).any()
    assert nm.cvt("f32", "f32", bits, ftz=True)[-1] == 0
    got = nm.cvt("f16", "f32", bits, rounding="rn", relu=True)
    assert got.tolist() == [0, 0, 0x3400, 0x4000, 0x7C00, 0, 0x7FFF, 0]
    got = nm.cvt("f16", "f32", bits, rounding="rn", satfinite=True)
    assert got.tolist() == [0xBC00, 0x8000, 0x3400, 0x4000, 0x7BFF, 0xFBFF, 0x7FFF, 0]
    assert nm.cvt("s32", "f32", bits[-1:], rounding="rpi", ftz=True)[0] == 0
    assert nm.cvt("s32", "f32", bits[-1:], rounding="rpi")[0] == 1
    tiny = np.array([1e-39], np.float64).view(np.uint64)
    assert nm.cvt("f32", "f64", tiny, rounding="rn", ftz=True)[0] == 0


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_pairs_have_the_first_operand_on_top(kind):
    a, b = (np.array([v], np.float32).view(np.uint32) for v in (1.0, -2.0))
    one, minus_two = (nm.cvt(kind, "f32", x, rounding="rn")[0] for x in (a, b))
    got = nm.cvt_pair(kind + "x2", a, b)
    assert got.dtype == np.uint32
    assert got[0] == int(one) << 16 | int(minus_two)
    assert nm.cvt_pair(kind + "x2", a, b, relu=True)[0] == int(one) << 16


@pytest.mark.parametrize(
    ("kind", "dtype"), [("e4m3x2", ml_dtypes.float8_e4m3fn), ("e5m2x2", ml_dtypes.float8_e5m2)]
)
def test_octets_agree_with_ml_dtypes(kind, dtype):
    octets = np.arange(256, dtype=np.uint8)
    values = octets.view(dtype).astype(np.float32)
    pairs = octets.astype(np.uint16) << 8 | octets[::-1]
    wide = nm.cvt("f16x2", kind, pairs)
    assert wide.dtype == np.uint32
    halves = np.stack([wide & 0xFFFF, wide >> 16]).astype(np.uint16).view(np.float16)
    np.testing.assert_array_equal(halves[1], values)
    np.testing.assert_array_equal(halves[0], values[::-1])

    largest = float(ml_dtypes.finfo(dtype).max)
    rng = np.random.default_rng(0)
    singles = (rng.standard_normal(4000) * np.exp2(rng.integers(-22, 8, 4000))).astype(np.float32)
    singles = np.concatenate([singles, values[np.isfinite(values)], [0.0, -0.0]]).astype(np.float32)
    singles = np.clip(singles, -largest, largest)
    want = singles.astype(dtype).view(np.uint8).astype(np.uint16)
    bits = singles.view(np.uint32)
    assert (nm.cvt_pair(kind, bits, bits) == (want << 8 | want)).all()
    with np.errstate(over="ignore"):
        narrow = singles.astype(np.float16)
    want = narrow.astype(np.float32).clip(-largest, largest).astype(dtype).view(np.uint8)
    packed = narrow[: len(narrow) // 2 * 2].view(np.uint32)
    got = nm.cvt(kind, "f16x2", packed)
    assert got.dtype == np.uint16
    assert (got.view(np.uint8) == want[: 2 * len(packed)]).all()
    special = np.array([1e9, -np.inf, np.nan], np.float32).view(np.uint32)
    top = {"e4m3x2": 0x7E, "e5m2x2": 0x7B}[kind]
    got = nm.cvt_pair(kind, special, np.zeros_like(special))
    assert got.tolist() == [top << 8, (top | 0x80) << 8, 0x7F00]
    got = nm.cvt_pair(kind, special, np.zeros_like(special), relu=True)
    assert got.tolist() == [top << 8, 0, 0x7F00]


SMALL = [
    ("e2m1x2", ml_dtypes.float4_e2m1fn, 4), ("e2m3x2", ml_dtypes.float6_e2m3fn, 6),
    ("e3m2x2", ml_dtypes.float6_e3m2fn, 6),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype", "width"), SMALL)
def test_pairs_of_small_floats_agree_with_ml_dtypes(kind, dtype, width):
    step = 4 if width == 4 else 8
    carrier = np.uint8 if width == 4 else np.uint16
    codes = np.arange(1 << width, dtype=np.uint8)
    values = codes.view(dtype).astype(np.float32)
    pairs = codes.astype(carrier) << step | codes[::-1]
    wide = nm.cvt("f16x2", kind, pairs).view(np.float16).reshape(-1, 2)
    np.testing.assert_array_equal(wide[:, 1], values)
    np.testing.assert_array_equal(wide[:, 0], values[::-1])

    rng = np.random.default_rng(1)
    singles = (rng.standard_normal(2000) * np.exp2(rng.integers(-6, 5, 2000))).astype(np.float32)
    middles = (values[1:] + values[:-1]) / 2  # ties
    singles = np.concatenate([singles, values, middles, [0.0, -0.0, 1e9, -np.inf, np.nan]])
    singles = singles.astype(np.float32)
    largest = float(ml_dtypes.finfo(dtype).max)
    wanted = np.nan_to_num(singles, nan=largest).clip(-largest, largest).astype(dtype)
    want = wanted.view(np.uint8).astype(carrier)
    bits = singles.view(np.uint32)
    got = nm.cvt_pair(kind, bits, bits[::-1].copy(), satfinite=True)
    assert got.dtype == carrier
    assert (got == (want << step | want[::-1])).all()
    clamped = np.where(np.signbit(singles), carrier(0), want)
    got = nm.cvt_pair(kind, bits, bits, satfinite=True, relu=True)
    assert (got == (clamped << step | clamped)).all()


@pytest.mark.parametrize("rounding", ["rz", "rp"])
def test_powers_of_two_agree_with_python(rounding):
    values = [0.0, 1.0, 1.5, -3.0, 2.0**-127, 2.0**-126, 2.0**-149, 1.1 * 2.0**127, 2.0**127]
    edges = {0.0: -127, 2.0**-149: -127}
    want = []
    for value in values:
        fraction, exponent = math.frexp(abs(value))
        up = rounding == "rp" and fraction > 0.5
        want.append(127 + edges.get(value, exponent if up else exponent - 1))
    bits = np.array([*values, np.inf, np.nan], np.float32).view(np.uint32)
    zeros = np.zeros_like(bits)
    beyond = 255 if rounding == "rp" else 254
    assert want[7] == beyond
    got = nm.cvt_pair("ue8m0x2", bits, zeros, rounding=rounding)
    assert got.tolist() == [word << 8 for word in (*want, 255, 255)]
    got = nm.cvt_pair("ue8m0x2", zeros, bits, rounding=rounding, satfinite=True)
    assert got.tolist() == [min(word, 254) for word in want] + [254, 255]


def test_powers_of_two_become_bf16():
    octets = np.arange(256, dtype=np.uint8)
    wide = nm.cvt("bf16x2", "ue8m0x2", octets.view(np.uint16)).view(np.uint16)
    want = octets.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    got = (wide.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(got, want)


def test_packing_saturates_and_shifts():
    a = np.array([70000, -5, 3], np.int32).view(np.uint32)
    b = np.array([-70000, 200, 7], np.int32).view(np.uint32)
    assert nm.cvt_pack("u16", a, b).tolist() == [0xFFFF0000, 200, 3 << 16 | 7]
    assert nm.cvt_pack("s16", a, b).tolist() == [0x7FFF8000, 0xFFFB00C8, 3 << 16 | 7]
    c = np.array([0xABCD, 1, 2], np.uint32)
    assert nm.cvt_pack("u8", a, b, c).tolist() == [0xABCDFF00, 0x000100C8, 0x00020307]
    assert nm.cvt_pack("s4", a, b, c).tolist() == [0xABCD78, 0x1B7, 0x237]


def test_unknown_types_and_roundings_are_named():
    bits = np.zeros(1, np.uint32)
    with pytest.raises(ValueError, match=r"kind .*'f31'"):
        nm.cvt("f31", "f32", bits)
    with pytest.raises(ValueError, match=r"rounding .*'rx'"):
        nm.cvt("s32", "f32", bits, rounding="rx")
    with pytest.raises(ValueError, match=r"kind .*'q7'"):
        nm.cvt("s32", "q7", bits, rounding="rzi")
