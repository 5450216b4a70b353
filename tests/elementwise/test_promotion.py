"""The array API standard's type promotion: arrays by the tables, Python scalars weak."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from bodies import shape_only

import culaunch as cl
from culaunch import elementwise as ew

SIGNED = [f"int{bits}" for bits in (8, 16, 32, 64)]
UNSIGNED = [f"uint{bits}" for bits in (8, 16, 32, 64)]
REAL = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NAMES = ["bool", *SIGNED, *UNSIGNED, *REAL, *COMPLEX]


def kind(name):
    return next(k for k in (SIGNED, UNSIGNED, REAL, COMPLEX, ["bool"]) if name in k)


def is_defined(a, b):
    kinds = {kind(a)[0], kind(b)[0]}
    if {a, b} == {"float16", "bfloat16"}:
        return False
    if kinds == {"int8", "uint8"}:
        return "uint64" not in (a, b)
    return len(kinds) == 1 or kinds == {"float16", "complex64"}


def expected(a, b):
    """Take NumPy's answer, which is the standard's where the standard defines one."""
    if "bfloat16" in (a, b):
        other = b if a == "bfloat16" else a
        return {"bfloat16": "bfloat16", "complex64": "complex64"}.get(
            other, other if kind(other) in (REAL, COMPLEX) else "?"
        )
    if "float16" in (a, b) and (kind(a) is COMPLEX or kind(b) is COMPLEX):
        return a if kind(a) is COMPLEX else b
    return np.result_type(a, b).name


def add(x, y, name):
    """Add, or choose between truth values, which have no sum: both promote alike."""
    return ew.where(ew.equal(x, y), x, y) if name == "bool" else ew.add(x, y)


def type_of(function, *names):
    """Return the type of a fused function's result; nothing is compiled."""
    fused = ew.fuse(function)
    body = cl.function(lambda arrays: fused(*arrays))
    return body.abstract([shape_only((4,), name) for name in names]).dtype.name


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NAMES, NAMES)))
def test_two_types_promote_as_in_the_standard(a, b):
    if is_defined(a, b):
        assert type_of(lambda x, y: add(x, y, a), a, b) == expected(a, b)
    else:
        name = "equal" if a == "bool" else "add"
        with pytest.raises(TypeError, match=f"{name}: {a} and {b} do not promote"):
            type_of(lambda x, y: add(x, y, a), a, b)


SCALARS = {
    True: {"bool"},
    2: {*SIGNED, *UNSIGNED, *REAL, *COMPLEX},
    1.5: {*REAL, *COMPLEX},
    2j: {*REAL, *COMPLEX},
}


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("name", NAMES)
def test_python_scalars_are_weak(scalar, name):
    if name not in SCALARS[scalar]:
        with pytest.raises(TypeError, match="do not promote"):
            type_of(lambda x: ew.add(x, scalar), name)
        return
    wanted = name
    if scalar == 2j and name in REAL:
        wanted = "complex128" if name == "float64" else "complex64"
    assert type_of(lambda x: add(x, scalar, name), name) == wanted
    assert type_of(lambda x: add(scalar, x, name), name) == wanted


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [("int8", "int32", "int32"), ("uint8", "int8", "int16"), ("float32", "float64", "float64"),
     ("uint32", "int16", "int64"), ("float32", "complex64", "complex64"),
     ("float64", "complex64", "complex128"), ("float16", "float32", "float32")],
)  # fmt: skip
def test_mixed_arrays_give_the_common_type(a, b, result):
    x, y = np.arange(5).astype(a), np.arange(5, 10).astype(b)
    got = ew.fuse(lambda x, y: x * y)(x, y)
    assert got.dtype.name == result
    np.testing.assert_array_equal(got, x.astype(result) * y.astype(result))


@pytest.mark.parametrize("number", [-7, 0, 300, 2**63 + 2**40])
def test_integers_of_any_size_and_sign_become_real_and_complex(number):
    x = np.array([1.5, -2.0], np.float32)
    given = ew.kernel("T x, float32 s", "T y", "y = x * s", "given")
    np.testing.assert_allclose(given(x, number), x * np.float32(number))
    for dtype in COMPLEX:
        product = ew.fuse(lambda x, s: x * s)(x.astype(dtype), number)
        assert product.dtype == dtype
        np.testing.assert_allclose(product, x.astype(dtype) * number, rtol=1e-6)


def test_scalars_take_the_type_of_what_they_meet():
    x = np.arange(6, dtype=np.int8)
    mixed = ew.fuse(lambda x, a: (x + a, ew.astype(x, ew.float64) + a))
    narrow, wide = mixed(x, 100)
    assert (narrow.dtype, wide.dtype) == (np.int8, np.float64)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrow, x + np.int8(100))
    with pytest.raises(OverflowError, match=r"argument a must fit int8 \(got 300\)"):
        mixed(x, 300)
    with pytest.raises(OverflowError, match="300 does not fit int8"):
        ew.fuse(lambda x: x + 300)(x)
    with pytest.raises(TypeError, match="int8 and Python float do not promote"):
        mixed(x, 1.5)


@pytest.mark.slow
def test_numpy_scalars_have_their_own_type():
    x = np.ones(3, np.float32)
    add = ew.fuse(lambda x, a: x + a)
    assert add(x, np.float64(0.1)).dtype == np.float64
    assert add(x, np.float64(0.1))[0] == 1 + 0.1
    assert add(x, np.float16(0.1))[0] == np.float32(1) + np.float32(np.float16(0.1))
    assert add(x, ml_dtypes.bfloat16(0.1))[0] == np.float32(1) + np.float32(ml_dtypes.bfloat16(0.1))
    assert add(x, np.complex64(2j)).dtype == np.complex64
    with pytest.raises(TypeError, match="float32 and int64 do not promote"):
        add(x, np.int64(3))


def test_scalars_alone_are_computed_as_python_does():
    scaled = ew.fuse(lambda x, a, b: x * (a * b + 1))
    x = np.ones(3, np.float32)
    assert scaled(x, 3, 4)[0] == 13
    assert scaled(x, 0.1, 3)[0] == np.float32(0.1 * 3 + 1)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", ["bool", "int16", "uint64", "float16", "float32", "float64"])
def test_casts(source, target):
    values = np.array([0, 1, 2, 3.5, 100, 120.75]).astype(source)
    got = ew.fuse(lambda x: ew.astype(x, target))(values)
    as_numpy = np.dtype(ml_dtypes.bfloat16 if target == "bfloat16" else target)
    assert got.dtype == as_numpy
    np.testing.assert_array_equal(got, values.astype(as_numpy))


def test_a_cast_to_half_precision_rounds_and_an_intermediate_does_not():
    x = np.array([1 + 2**-12], np.float32)
    through = ew.fuse(lambda x: ew.astype(ew.astype(x, "float16"), "float32"))
    assert through(x)[0] == 1
    from_double = ew.fuse(lambda x: ew.astype(x, ew.float16))
    tie = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40])
    np.testing.assert_array_equal(from_double(tie), tie.astype(np.float16))
    half = np.array([1, 2048], np.float16)
    assert ew.fuse(lambda x: (x + 1) - 1)(half)[1] == 2048  # 2049 is no float16


@pytest.mark.parametrize("what", [np.float32, np.dtype("float32"), "float32", ew.float32])
def test_names_of_types(what):
    assert type_of(lambda x: ew.astype(x, what), "int8") == "float32"


@pytest.mark.needs("torch")
def test_names_of_types_of_torch():
    import torch

    assert type_of(lambda x: ew.astype(x, torch.bfloat16), "int8") == "bfloat16"


def test_names_that_are_no_types():
    with pytest.raises(TypeError, match="dtype must be one of bool, int8"):
        type_of(lambda x: ew.astype(x, "float8"), "int8")
