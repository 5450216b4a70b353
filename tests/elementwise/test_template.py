"""The string form: CuPy's convention for parameters, types and indices."""

from __future__ import annotations

import numpy as np
import pytest

from culaunch import elementwise as ew

saxpy = ew.kernel("float32 a, T x, T y", "T z", "z = a * x + y", "saxpy")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_a_type_parameter_is_the_arrays(dtype):
    x, y = np.arange(5).astype(dtype), np.arange(5, 10).astype(dtype)
    got = saxpy(2.0, x, y)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, 2 * x + y)
    assert "saxpy_" in saxpy.source(2.0, x, y)


def test_broadcasting_out_and_keywords():
    x, out = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3), np.float32)
    assert saxpy(np.float32(2), x, x[0], out=out) is out
    np.testing.assert_array_equal(out, 2 * x + x[0])
    np.testing.assert_array_equal(saxpy(y=x, a=3, x=x.T.copy().T), 4 * x)
    np.testing.assert_array_equal(saxpy(np.float32([1, 2, 3]), x, x), np.float32([2, 3, 4]) * x)


def test_several_statements_outputs_and_types():
    kernel = ew.kernel(
        "T x, U y", "U total, bool less",
        "U wide = x;\nif (wide < y) { less = true; } else { less = false; }\ntotal = wide + y",
    )  # fmt: skip
    x, y = np.arange(5, dtype=np.int8), np.array([3, 3, 3, 3, 3], np.int64)
    total, less = kernel(x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(less, x < y)


def test_raw_arguments_and_indices():
    reverse = ew.kernel("raw T x, int64 n", "T y", "y = x[n - 1 - i]", "reverse")
    x = np.arange(9, dtype=np.float32)
    out = np.zeros(9, np.float32)
    np.testing.assert_array_equal(reverse(x, 9, out=out), x[::-1])
    with pytest.raises(ValueError, match="no argument determines the output's shape"):
        reverse(x, 9)
    with pytest.raises(ValueError, match="argument x is raw and must be contiguous"):
        reverse(x[::2], 5, out=out[:5])
    with pytest.raises(ValueError, match="out overlaps the raw argument x"):
        reverse(x, 9, out=x)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_raw_half_precision(name):
    import torch

    x = torch.arange(6).to(getattr(torch, name))
    table = ew.kernel("raw T table, int32 at", "T y", "y = table[at] + 1")
    assert table(x, torch.tensor([5, 0], dtype=torch.int32)).tolist() == [6, 1]


def test_the_index_is_in_c_order_whatever_the_layout():
    index = ew.kernel("T x", "int64 y, int64 count", "y = i; count = _ind.size()")
    x = np.zeros((6, 8), np.float32)
    for view in (x, x.T, x[::2, ::-1], x[:, :3], x[:0], np.zeros((20, 30), np.float32).T):
        got, count = index(view)
        np.testing.assert_array_equal(got, np.arange(view.size).reshape(view.shape))
        np.testing.assert_array_equal(count, view.size)


def test_parameters_may_have_the_names_that_the_kernel_uses():
    names = ew.kernel("int32 k, T u, float32 size", "T first, T rest", "first = u * k; rest = size")
    first, rest = names(3, np.arange(40, dtype=np.float32), 7)
    np.testing.assert_array_equal(first, np.arange(40) * 3)
    np.testing.assert_array_equal(rest, 7)


def test_preamble():
    kernel = ew.kernel(
        "T x", "T y", "y = twice(x)", preamble="template <class V>\n"
        "__device__ V twice(V v) { return v + v; }\n"
    )  # fmt: skip
    np.testing.assert_array_equal(kernel(np.arange(3)), [0, 2, 4])


def test_python_numbers_give_a_type_where_no_array_does():
    kernel = ew.kernel("S a, T x", "S y", "y = a + x")
    assert kernel(2, np.ones(3, np.float32)).dtype == np.int64
    assert kernel(2.0, np.ones(3, np.float32)).dtype == np.float64


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [("T", "T y", "in_params: a parameter must be 'type name'"),
     ("float x", "float y", "float is not an element type"),
     ("T x", "", "at least one parameter"), ("T x", "S y", "type S of y is not an element type"),
     ("T x", "raw T y", "raw output is not supported"), ("T x, T x", "T y", "appears twice"),
     ("T i", "T y", "i is the element's index"), ("T new", "T y", "a keyword of C\\+\\+"),
     ("T out", "T y", "the call has out=")],
)  # fmt: skip
def test_parameters_that_cannot_be_read(inputs, outputs, message):
    with pytest.raises(ValueError, match=message):
        ew.kernel(inputs, outputs, "y = x")


def test_arguments_of_the_wrong_type():
    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="saxpy: T is float32, and argument y is float64"):
        saxpy(1.0, x, np.ones(3))
    with pytest.raises(TypeError, match="argument a must be an array of float32"):
        saxpy(np.ones(3), x, x)
    with pytest.raises(TypeError, match="argument a must be float32"):
        saxpy(1j, x, x)
    with pytest.raises(TypeError, match="saxpy takes a, x, y and out="):
        saxpy(1.0, x)
    with pytest.raises(TypeError, match="cannot be called while another function is traced"):
        ew.fuse(lambda x: saxpy(1.0, x, x))(x)


def test_an_error_in_the_operation_shows_the_compilers_words():
    import culaunch as cl

    with pytest.raises(cl.CompileError, match="undefined"):
        ew.kernel("T x", "T y", "y = missing(x)")(np.ones(3))


def test_an_output_may_be_called_out():
    double = ew.kernel("T inp", "T out", "out = inp * 2")
    assert double(np.ones(3, np.float32)).tolist() == [2, 2, 2]
    given = np.zeros(3, np.float32)
    assert double(np.ones(3, np.float32), out=given) is given
    assert given.tolist() == [2, 2, 2]
