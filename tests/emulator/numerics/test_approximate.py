"""The approximations: their special values, and their errors against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from emulator_internals import numerics as nm

INF, NAN = np.inf, np.nan


def f32(*values) -> np.ndarray:
    return np.array(values, np.float32).view(np.uint32)


def samples(low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.uniform(low, high, 300).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "given", "wanted"),
    [
        (nm.ex2, [-INF, -0.0, 0.0, INF, NAN, 1.0, 128.0, -200.0], [0, 1, 1, INF, NAN, 2, INF, 0]),
        (nm.lg2, [-INF, -1.0, -0.0, 0.0, INF, NAN, 8.0], [NAN, NAN, -INF, -INF, INF, NAN, 3]),
        (nm.sin, [-INF, -0.0, 0.0, INF, NAN], [NAN, -0.0, 0.0, NAN, NAN]),
        (nm.cos, [-INF, -0.0, 0.0, INF, NAN], [NAN, 1, 1, NAN, NAN]),
        (nm.tanh, [-INF, -0.0, 0.0, INF, NAN], [-1, -0.0, 0.0, 1, NAN]),
        (nm.rcp_approx, [-INF, -0.0, 0.0, INF, NAN, 4.0], [-0.0, -INF, INF, 0.0, NAN, 0.25]),
        (nm.rsqrt_approx, [-INF, -4.0, -0.0, 0.0, INF, NAN, 4.0],
         [NAN, NAN, -INF, INF, 0.0, NAN, 0.5]),
        (nm.sqrt_approx, [-INF, -4.0, -0.0, 0.0, INF, NAN, 4.0],
         [NAN, NAN, -0.0, 0.0, INF, NAN, 2.0]),
    ],
)  # fmt: skip
def test_special_values(function, given, wanted):
    want = f32(*wanted)
    want[np.isnan(want.view(np.float32))] = 0x7FFFFFFF
    assert function("f32", f32(*given)).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("function", "true", "low", "high"),
    [
        (nm.ex2, lambda x: mpmath.power(2, x), -120, 120),
        (nm.lg2, lambda x: mpmath.log(x, 2), 1e-3, 1e6),
        (nm.tanh, mpmath.tanh, -4, 4),
        (nm.rcp_approx, lambda x: 1 / x, -1e3, 1e3),
        (nm.rsqrt_approx, lambda x: 1 / mpmath.sqrt(x), 1e-6, 1e6),
        (nm.sqrt_approx, mpmath.sqrt, 1e-6, 1e6),
    ],
)
def test_results_are_within_half_a_unit(function, true, low, high):
    given = samples(low, high)
    got = function("f32", given.view(np.uint32)).view(np.float32)
    for x, y in zip(given, got, strict=True):
        exact = true(mpmath.mpf(float(x)))
        assert abs(exact - float(y)) <= 0.51 * float(np.spacing(np.abs(y)))


@pytest.mark.parametrize(("function", "true"), [(nm.sin, mpmath.sin), (nm.cos, mpmath.cos)])
def test_sine_and_cosine_keep_the_bound_of_the_isa(function, true):
    given = samples(-2 * np.pi, 2 * np.pi)
    got = function("f32", given.view(np.uint32)).view(np.float32)
    for x, y in zip(given, got, strict=True):
        assert abs(true(mpmath.mpf(float(x))) - float(y)) <= 2.0**-20.5


@pytest.mark.parametrize(
    ("function", "given", "wanted"),
    [
        (nm.ex2, [-1e-40, -130.0], [1, 0]),
        (nm.lg2, [1e-40, -1e-40], [-INF, -INF]),
        (nm.sin, [-1e-40], [-0.0]),
        (nm.rcp_approx, [1e-40, -1e-40, 2.0**127], [INF, -INF, 0]),
        (nm.rsqrt_approx, [1e-40, -1e-40], [INF, -INF]),
        (nm.sqrt_approx, [1e-40, -1e-40], [0.0, -0.0]),
    ],
)
def test_flushing(function, given, wanted):
    assert function("f32", f32(*given), ftz=True).tolist() == f32(*wanted).tolist()
    assert function("f32", f32(*given)).tolist() != f32(*wanted).tolist() or function is nm.ex2


@pytest.mark.parametrize("function", [nm.div_approx, nm.div_full])
def test_division_is_within_two_units(function):
    a, b = samples(-1e6, 1e6), samples(1e-3, 1e3)[::-1].copy()
    got = function(a.view(np.uint32), b.view(np.uint32)).view(np.float32)
    true = a.astype(np.float64) / b
    assert (np.abs(got - true) <= 2 * np.spacing(np.abs(got))).all()
    special = function(f32(1, 0, INF, -1, NAN), f32(0, 0, INF, INF, 1)).view(np.float32)
    np.testing.assert_array_equal(special, [INF, NAN, NAN, -0.0, NAN])


def test_division_by_a_huge_divisor():
    huge = f32(2.0**127, 2.0**127)
    assert nm.div_approx(f32(2.0**127, INF), huge).tolist() == [0, 0x7FFFFFFF]
    assert nm.div_full(f32(2.0**127, INF), huge).view(np.float32).tolist() == [1, INF]
    tiny = f32(2.0**-140)
    assert nm.div_full(tiny, tiny).view(np.float32)[0] == 1
    assert nm.div_approx(tiny, tiny).view(np.float32)[0] == 1
    assert nm.div_approx(tiny, tiny, ftz=True)[0] == 0x7FFFFFFF


def test_halves():
    bits = np.arange(0x7C00, dtype=np.uint16)[::37]
    halves = bits.view(np.float16)
    with np.errstate(over="ignore"):
        want = np.exp2(halves.astype(np.float64)).astype(np.float16)
    assert (nm.ex2("f16", bits).view(np.float16) == want).all()
    want = np.tanh(halves.astype(np.float64)).astype(np.float16)
    assert (nm.tanh("f16", bits).view(np.float16) == want).all()
    packed = np.array([0x3C00_4000], np.uint32)
    assert nm.ex2("f16x2", packed)[0] == 0x4000_4400
    assert nm.tanh("bf16x2", np.array([0x7F80_FF80], np.uint32))[0] == 0x3F80_BF80
    assert nm.ex2("bf16", np.array([1, 0xC300], np.uint16), ftz=True).tolist() == [0x3F80, 0]
    with pytest.raises(ValueError, match=r"kind .*'f64'"):
        nm.ex2("f64", np.zeros(1, np.uint64))


def test_rsqrt_of_doubles_is_within_half_a_unit():
    rng = np.random.default_rng(5)
    values = np.abs(rng.standard_normal(3000)) * 10.0 ** rng.integers(-307, 307, 3000)
    corners = [5e-324, 2.0**-1022, 1.5e-310, np.finfo(float).max, 1, 2, 0.5]
    values = np.concatenate([values, corners])
    got = nm.rsqrt_approx("f64", values.view(np.uint64)).view(float)
    with mpmath.workprec(200):
        for x, y in zip(values.tolist(), got.tolist(), strict=True):
            error = abs(mpmath.mpf(y) - 1 / mpmath.sqrt(mpmath.mpf(x)))
            assert error <= mpmath.mpf(np.spacing(y)) * 0.51, x
    special = np.array([0.0, -0.0, INF, -1.0, -INF, NAN, 4.0])
    got = nm.rsqrt_approx("f64", special.view(np.uint64)).view(float)
    assert np.array_equal(got, [INF, -INF, 0, NAN, NAN, NAN, 0.5], equal_nan=True)


def test_doubles_use_the_upper_word():
    values = np.array([4.0, -INF, -0.0, 5e-324, NAN, 3.0, np.nextafter(4, 5)])
    got = nm.rcp_approx("f64", values.view(np.uint64), ftz=True)
    assert not (got & 0xFFFFFFFF).any()
    assert got.view(float)[:4].tolist() == [0.25, 0, -INF, INF]
    assert np.signbit(got.view(float)[1])
    assert got[4] == 0x7FFFFFFF00000000
    assert abs(got.view(float)[5] * 3 - 1) < 2.0**-20
    assert got.view(float)[6] == 0.25
    # Cut off after the bits that are kept, not rounded: as an H200 has it.
    cut = np.array([1.1875])
    assert nm.rcp_approx("f64", cut.view(np.uint64), ftz=True)[0] == 0x3FEAF28600000000
    got = nm.rsqrt_approx("f64", values.view(np.uint64), ftz=True).view(float)
    assert got[0] == 0.5
    assert np.isnan(got[1])
    assert got[2] == -INF
