"""Cases that NumPy or the standard leave open, bounds by mpmath, and all half-precision numbers."""

from __future__ import annotations

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import apart, reference

from culaunch import elementwise as ew

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]

integer_division = ew.fuse(lambda x, y: (x // y, x % y))
real_division = ew.fuse(lambda x, y: (x // y, x % y))
powers = ew.fuse(lambda x, y: ew.pow(x, y))
shifts = ew.fuse(lambda x, y: (x << y, x >> y))


def integers(name, count, low=None, high=None):
    info = np.iinfo(name)
    rng = np.random.default_rng(3)
    return rng.integers(
        info.min if low is None else low, info.max if high is None else high, count, name,
        endpoint=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_division_is_pythons(name):
    x, y = integers(name, 300), integers(name, 300)
    y[:100] = integers(name, 100, 1, 9)
    if name[0] == "i":
        y[:50] *= -1
        x[50], y[50] = np.iinfo(name).min, -1
    y[y == 0] = 1
    quotient, rest = integer_division(x, y)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(quotient, x // y)
    np.testing.assert_array_equal(rest, x % y)
    by_zero = integer_division(x, np.zeros_like(x))
    assert not np.any(by_zero[0])
    assert not np.any(by_zero[1])


reals = st.floats(width=32) | st.integers(-20, 20).map(float)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.tuples(reals, reals), min_size=1, max_size=30))
def test_real_division_is_pythons(pairs):
    x, y = (np.array(part, np.float32) for part in zip(*pairs, strict=True))
    quotient, rest = real_division(x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(quotient, x // y)
        np.testing.assert_array_equal(rest, x % y)


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_powers_wrap_around(name):
    x, y = integers(name, 300), integers(name, 300, 0, 40)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(powers(x, y), np.power(x, y))
    if name[0] == "i":
        got = powers(np.array([2, 1, -1, -1, 0], name), np.array([-1, -5, -3, -4, -1], name))
        assert got.tolist() == [0, 1, -1, 1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", INTEGERS)
def test_shifts_by_any_count(name):
    bits = np.iinfo(name).bits
    x, y = integers(name, 200), integers(name, 200, 0, bits + 3)
    left, right = shifts(x, y)
    np.testing.assert_array_equal(left, np.left_shift(x, y))
    np.testing.assert_array_equal(right, np.right_shift(x, y))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_powers_of_reals(name):
    rng = np.random.default_rng(5)
    x, y = np.abs(rng.normal(size=300)).astype(name), rng.normal(size=300).astype(name)
    special = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, -2, 0.5]
    x[:100], y[:100] = np.repeat(special, 10), np.tile(special, 10)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    assert apart(powers(x, y), wanted, name) <= 8


def test_squares_are_multiplications():
    square = ew.fuse(lambda x: x**2)
    assert "powf" not in square.source(np.ones(3, np.float32))
    np.testing.assert_array_equal(square(np.arange(-5, 5)), np.arange(-5, 5) ** 2)
    np.testing.assert_array_equal(ew.fuse(lambda x: x**2.0)(np.array([1.5], np.float32)), [2.25])
    with pytest.raises(TypeError, match="int64 and Python float do not promote"):
        ew.fuse(lambda x: x**2.0)(np.arange(3))


@pytest.mark.slow
def test_complex_powers():
    z = np.array([1 + 2j, -3j, 0, 2, -1.5])
    np.testing.assert_allclose(powers(z, np.full(5, 2.5 - 1j)), z ** (2.5 - 1j), rtol=1e-12)
    np.testing.assert_array_equal(powers(z, np.zeros(5, np.complex128)), np.ones(5))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_the_next_number(name):
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    numbers = np.array([0, -0.0, 1, -1, 2, 1e-7, 3e4, np.inf, -np.inf, np.nan]).astype(dtype)
    x, to = np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))
    got = ew.fuse(lambda x, y: ew.nextafter(x, y))(x, to)
    with np.errstate(all="ignore"):
        wanted = np.nextafter(x, to)
    np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_logaddexp_and_hypot(name):
    rng = np.random.default_rng(6)
    x, y = (rng.normal(size=300).astype(name) * 30 for _ in range(2))
    special = [0.0, np.inf, -np.inf, np.nan, 700]
    x[:25], y[:25] = np.repeat(special, 5), np.tile(special, 5)
    total, length = ew.fuse(lambda x, y: (ew.logaddexp(x, y), ew.hypot(x, y)))(x, y)
    wide = np.longdouble if name == "float64" else np.float64
    with np.errstate(all="ignore"):
        wanted = np.logaddexp(x.astype(wide), y.astype(wide))
    # Where the logarithm is near 0 it is as exact as its summands.
    np.testing.assert_allclose(total, wanted.astype(name), rtol=4 * np.finfo(name).eps,
                               atol=4 * np.finfo(name).eps)  # fmt: skip
    assert apart(length, reference("hypot", x.astype(wide), y.astype(wide)), name) <= 3


# Largest errors in units in the last place (programming guide, "Mathematical Functions").
BOUNDS = {"exp": 1, "log": 1, "tanh": 2, "erf": 2, "erfc": 5, "expm1": 1, "log1p": 1, "sin": 2,
          "cos": 2, "atan": 2, "sinh": 2, "asinh": 3, "log2": 1, "log10": 1}  # fmt: skip


@pytest.mark.slow
def test_the_special_functions_bounds_by_mpmath():
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.uniform(-3, 3, 60), rng.normal(size=40) * 1e-3, rng.normal(size=20)])
    x = np.concatenate([x, np.abs(x) * 5])
    results = ew.fuse(lambda x: tuple(getattr(ew, name)(x) for name in BOUNDS))(x)
    mpmath.mp.dps = 40
    functions = {"log2": lambda v: mpmath.log(v, 2), "log10": mpmath.log10}
    for name, got in zip(BOUNDS, results, strict=True):
        function = functions.get(name) or getattr(mpmath, name)
        for number, value in zip(x, got, strict=True):
            exact = function(mpmath.mpf(float(number)))
            if isinstance(exact, mpmath.mpc):
                assert np.isnan(value)
                continue
            unit = mpmath.mpf(float(np.spacing(np.abs(float(exact)) or 1e-300)))
            assert abs(mpmath.mpf(float(value)) - exact) <= (BOUNDS[name] + 0.5) * unit, (
                name,
                number,
            )


@pytest.mark.slow
@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_every_number_of_half_precision(name):
    """The approximations are seen in the last place only, and seldom."""
    import torch

    dtype = getattr(torch, name)
    x = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype)
    functions = ew.fuse(lambda x: (ew.tanh(x), ew.exp(x), ew.sqrt(x), 1 / x, x + 0, x / 3))
    wide = x.double()
    exact = (wide.tanh(), wide.exp(), wide.sqrt(), 1 / wide, wide, wide / 3)
    for got, wanted in zip(functions(x), exact, strict=True):
        rounded = wanted.to(dtype)
        same = (got == rounded) | (got.isnan() & rounded.isnan())
        places = got.view(torch.int16).int() - rounded.view(torch.int16).int()
        assert int((~same).sum()) <= 10
        assert torch.all(same | (places.abs() <= 1))
