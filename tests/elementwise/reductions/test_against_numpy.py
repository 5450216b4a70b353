"""Reductions against NumPy: element types, axes, strides, and the shape of every regime."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culaunch import elementwise as ew

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
# Of each reduction: the element types that it takes, and the same in NumPy.
TABLE = {
    "sum": (("bool", *INTEGERS, *FLOATS, *COMPLEX), np.sum),
    "prod": (("bool", *INTEGERS, *FLOATS, *COMPLEX), np.prod),
    "max": (("bool", *INTEGERS, *FLOATS), np.max),
    "min": (("bool", *INTEGERS, *FLOATS), np.min),
    "mean": (("bool", *INTEGERS, *FLOATS, *COMPLEX), np.mean),
    "var": ((*INTEGERS, *FLOATS, *COMPLEX), np.var),
    "std": ((*INTEGERS, *FLOATS), np.std),
    "any": (("bool", *INTEGERS, *FLOATS, *COMPLEX), np.any),
    "all": (("bool", *INTEGERS, *FLOATS, *COMPLEX), np.all),
    "argmax": ((*INTEGERS, *FLOATS), np.argmax),
    "argmin": ((*INTEGERS, *FLOATS), np.argmin),
}
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "complex64": 1e-5}


@functools.cache
def reducing(name, axis, keepdims):
    return ew.fuse(lambda x: getattr(ew, name)(x, axis=axis, keepdims=keepdims))


def numbers(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype in INTEGERS:
        return random.integers(0, 5, shape).astype(dtype)
    made = random.integers(-8, 9, shape) / 4
    if dtype in COMPLEX:
        made = made + 1j * random.integers(-8, 9, shape) / 4
    return made.astype(dtype)


def check(name, x, axis, keepdims=False):
    wanted = TABLE[name][1](x, axis=axis, keepdims=keepdims)
    got = reducing(name, axis, keepdims)(x)
    assert got.dtype == wanted.dtype
    assert got.shape == np.shape(wanted)
    exact = x.dtype.kind not in "fc" and wanted.dtype.kind not in "fc"
    if exact:
        np.testing.assert_array_equal(got, wanted)
    else:
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        if x.dtype.kind in "fc" and name not in ("argmax", "argmin"):
            precise = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
            wanted = TABLE[name][1](precise, axis=axis, keepdims=keepdims)
        tolerance = TOLERANCE.get(x.dtype.name, 1e-12)
        np.testing.assert_allclose(
            got.astype(wide), wanted.astype(wide), rtol=tolerance, atol=tolerance
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, (dtypes, _) in TABLE.items() for dtype in dtypes]
)
def test_every_element_type_as_numpy_has_it(name, dtype):
    x = numbers((3, 24), dtype)
    check(name, x, -1)
    check(name, x, 0)


@st.composite
def arrays(draw):
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 5, 8, 17, 20]), min_size=0, max_size=4))
    steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    memory = [shape[axis] * abs(steps[axis]) for axis in order]
    base = numbers(memory, draw(st.sampled_from(["float32", "int16", "float16"])))
    view = base.transpose([list(order).index(axis) for axis in range(len(shape))])
    view = view[(*(slice(None, None, step) for step in steps), ...)]
    axes = draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    kind = draw(st.sampled_from(["all", "some", "one"]))
    axis = None if kind == "all" or not axes else tuple(axes) if kind == "some" else axes[0]
    return view, axis, draw(st.booleans())


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(arrays(), st.sampled_from(["sum", "max", "mean"]))
def test_any_axes_and_any_strides(case, name):
    x, axis, keepdims = case
    check(name, x, axis, keepdims)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(arrays())
def test_the_first_of_equal_elements_wherever_they_lie(case):
    x, axis, keepdims = case
    if isinstance(axis, tuple):
        axis = axis[0]
    check("argmax", x, axis, keepdims)


@st.composite
def unusual_arrays(draw):
    """Draw NaN and infinities, empty and repeated dimensions, memory between two alignments."""
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 8, 17, 33, 40]), max_size=3))
    dtype = draw(st.sampled_from(["float16", "float32", "float64", "complex64"]))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    # Numbers whose sums and products are exact in any order.
    made = random.choice([0, -0.0, 1, -1, 1, -1], (*shape, 2))
    if draw(st.booleans()):
        special = random.choice([np.nan, np.inf, -np.inf], made.shape)
        made = np.where(random.random(made.shape) < 0.05, special, made)
    x = made[..., 0].astype(dtype)
    if dtype == "complex64":
        x.imag = np.where(np.isfinite(made[..., 1]), made[..., 1], 0)
    at = draw(st.integers(0, 1))
    memory = np.empty(x.size + 1, dtype)
    memory[at : at + x.size] = x.ravel()
    x = memory[at : at + x.size].reshape(shape)
    if shape and shape[-1] and draw(st.booleans()):
        x = np.broadcast_to(x[..., :1], x.shape)
    axes = st.none() if not shape else st.none() | st.integers(-len(shape), len(shape) - 1)
    return x, draw(axes), draw(st.booleans())


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(unusual_arrays(), st.sampled_from(["sum", "prod", "max", "min", "any", "all", "argmin"]))
def test_unusual_arrays(case, name):
    x, axis, keepdims = case
    if x.dtype.kind == "c" and name in ("prod", "max", "min", "argmin"):
        x = x.real.copy()
    try:
        with np.errstate(all="ignore"):
            wanted = TABLE[name][1](x, axis=axis, keepdims=keepdims)
    except ValueError:  # NumPy has no greatest of no elements
        with pytest.raises(ValueError, match="zero elements"):
            reducing(name, axis, keepdims)(x)
        return
    got = reducing(name, axis, keepdims)(x)
    np.testing.assert_array_equal(got, wanted, strict=True)


# Each regime: a few lanes, a warp, blocks, a row that is read again, rows of several blocks.
ROWS = [(9, 3), (70, 128), (5, 130), (3, 1000), (2, 4099), (40, 20000), (1, 70000), (2, 70001)]
COLUMNS = [(5, 16), (40, 64), (33, 33), (700, 17), (3000, 130), (3, 50, 40)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*ROWS, *COLUMNS], ids=str)
@pytest.mark.parametrize("axis", [0, -1, None])
def test_every_regime(shape, axis):
    check("sum", numbers(shape, "float32"), axis)
    check("argmin", numbers(shape, "int32"), axis)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (2, 0, 3)], ids=str)
def test_empty_arrays(shape):
    x = np.zeros(shape, np.float32)
    check("sum", x, -1)
    check("all", x, 0)
    check("prod", x, None)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_of_no_elements_there_is_no_greatest(name, dtype):
    if dtype == "bool" and name.startswith("arg"):
        with pytest.raises(TypeError, match=f"{name} takes signed, unsigned, real types"):
            reducing(name, 0, False)(np.zeros((2, 3), bool))
        return
    with pytest.raises(ValueError, match=f"{name} cannot reduce zero elements"):
        reducing(name, 0, False)(np.zeros((0, 3), dtype))


def test_zero_dimensions():
    x = np.array(3.5, np.float32)
    check("sum", x, None)
    check("max", x, (), True)


def test_nan_is_the_greatest_the_least_and_the_first():
    x = np.array([[1, np.nan, 3, np.nan], [4, 5, np.nan, 1]], np.float32)
    for name in ("max", "min", "argmax", "argmin"):
        np.testing.assert_array_equal(reducing(name, -1, False)(x), TABLE[name][1](x, axis=-1))


def test_half_precision_is_added_up_in_float32():
    x = np.full(70000, 1.0, np.float16)
    assert ew.fuse(lambda x: ew.sum(x, dtype="float32"))(x) == 70000
    assert ew.fuse(lambda x: ew.mean(x))(x) == 1


def test_logsumexp_where_exp_overflows_and_of_infinities():
    f = ew.fuse(lambda x: ew.logsumexp(x, axis=-1))
    x = np.array([[1000, 1000.5], [-np.inf, -np.inf], [np.inf, 1], [-2000, -2001]], np.float32)
    wanted = np.logaddexp.reduce(x.astype(np.float64), axis=-1)
    np.testing.assert_allclose(f(x), wanted, rtol=1e-6)


@pytest.mark.parametrize("order", [1, 2, np.inf, -np.inf])
def test_norms(order):
    x = numbers((4, 9), "float32")
    got = ew.fuse(lambda x: ew.norm(x, axis=-1, ord=order))(x)
    np.testing.assert_allclose(got, np.linalg.norm(x, order, axis=-1), rtol=1e-6)


def test_correction_and_type_of_the_sum():
    x = numbers((4, 9), "float32")
    got = ew.fuse(lambda x: ew.var(x, axis=1, correction=1))(x)
    np.testing.assert_allclose(got, x.var(axis=1, ddof=1), rtol=1e-5)
    small = numbers((4, 9), "int8")
    assert ew.fuse(lambda x: ew.sum(x, axis=1, dtype="int32"))(small).dtype == np.int32


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_a_sum_and_a_product_in_bool(name):
    x = np.array([[0, 2, 0], [3, 1, 1]], np.int32)
    got = ew.fuse(lambda x: getattr(ew, name)(x, axis=1, dtype=bool))(x)
    wanted = getattr(np, name)(x, axis=1, dtype=bool)
    np.testing.assert_array_equal(got, wanted, strict=True)


def test_an_array_without_dimensions_has_no_axis():
    with pytest.raises(ValueError, match=r"axis must be None or \(\) for an array without"):
        reducing("sum", 0, False)(np.zeros((), np.float32))


def test_logsumexp_names_itself_when_it_refuses_complex_numbers():
    with pytest.raises(TypeError, match=r"logsumexp takes integers and real types \(got complex64"):
        ew.fuse(lambda x: ew.logsumexp(x))(np.zeros(3, np.complex64))
