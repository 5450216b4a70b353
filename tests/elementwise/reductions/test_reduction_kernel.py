"""``ReductionKernel`` as CuPy has it: expressions, axes, types, identities, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

from culaunch import elementwise as ew

total = ew.ReductionKernel("T x", "T out", "x", "a + b", "out = a", "0", "my_sum")


def integers(shape, dtype="int8"):
    return np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)


@pytest.mark.parametrize(
    "shape", [(1,), (2,), (31,), (512,), (513,), (33, 100), (5, 1000)], ids=str
)
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_shapes(shape, axis):
    x = integers(shape)
    np.testing.assert_array_equal(total(x, axis=axis), x.sum(axis, dtype=np.int8))


@pytest.mark.parametrize(
    ("shape", "order", "axis"),
    [
        ((2, 4, 3), (2, 1, 0), (0, 1)),
        ((2, 4, 5, 3), (3, 2, 1, 0), (1, 2)),
        ((2, 4, 3), (2, 1, 0), (1, 2)),
        ((0, 4, 3), (2, 1, 0), (0, 1)),
        ((2, 4, 3), (2, 1, 0), (0, 1, 2)),
        ((4, 3, 2, 4, 3, 2, 2), (0, 1, 2, 3, 4, 5, 6), (1, 4, 3, 6)),
    ],
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_transposed_arrays(shape, order, axis, keepdims):
    x = integers(shape).transpose(order)
    got = total(x, axis=axis, keepdims=keepdims)
    np.testing.assert_array_equal(got, x.sum(axis, dtype=np.int8, keepdims=keepdims))


def test_several_inputs_of_several_types_and_numbers():
    distance = ew.ReductionKernel(
        "T x, U y, float32 scale", "T z", "(x - y) * (x - y) * scale", "a + b", "z = sqrt(a)", "0"
    )
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(3, dtype=np.int32)
    wanted = np.sqrt(((x - y) ** 2 * 2).sum(-1))
    np.testing.assert_allclose(distance(x, y, 2.0, axis=-1), wanted, rtol=1e-6)


def test_the_output_may_be_given():
    x, out = integers((3, 5), "int32"), np.empty(3, np.int32)
    assert total(x, out, axis=1) is out
    np.testing.assert_array_equal(out, x.sum(1))
    assert total(x, axis=[0, 1], out=np.empty((), np.int32)) == x.sum()


def test_the_type_of_the_reduction_and_the_numbers_of_elements():
    mean = ew.ReductionKernel(
        "int8 x", "float32 y", "x", "a + b", "y = (float)a * _out_ind.size() / _in_ind.size()", "0",
        reduce_type="int32",
    )  # fmt: skip
    x = integers((4, 30))
    np.testing.assert_allclose(mean(x, axis=1), x.mean(1), rtol=1e-6)


def test_without_an_identity():
    most = ew.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", None)
    x = -np.abs(integers((4, 70000 // 4), "int32")) - 5
    np.testing.assert_array_equal(most(x, axis=1), x.max(1))
    with pytest.raises(ValueError, match="it has no identity"):
        most(np.zeros((0,), np.int32))


def test_a_preamble_and_half_precision():
    kernel = ew.ReductionKernel(
        "T x", "T y", "twice(x)", "a + b", "y = a", "0",
        preamble="__device__ float twice(float x) { return 2 * x; }",
    )  # fmt: skip
    x = np.arange(8, dtype=np.float16)
    assert kernel(x) == 56


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("T x", "T y", "x", "a + b", "y = a", "0", "1"), "name must be a C identifier"),
        (("T x", "T y, T z", "x", "a + b", "y = a", "0"), "out_params must have one parameter"),
        (("", "T y", "x", "a + b", "y = a", "0"), "in_params must have at least one"),
        (
            ("raw T x", "T y", "x", "a + b", "y = a", "0"),
            "x is raw, but a reduction cannot have a raw parameter",
        ),
    ],
)
def test_mistakes_of_the_text_are_told(arguments, text):
    with pytest.raises(ValueError, match=text):
        ew.ReductionKernel(*arguments)


def test_mistakes_of_a_call_are_told():
    with pytest.raises(TypeError, match="takes x"):
        total()
    with pytest.raises(ValueError, match="axis must be from -1 to 0"):
        total(integers(3), axis=2)
    with pytest.raises(ValueError, match="a dimension twice"):
        total(integers((2, 2)), axis=(0, -2))
    with pytest.raises(TypeError, match="argument x must be float32"):
        ew.ReductionKernel("float32 x", "T y", "x", "a + b", "y = a", "0", reduce_type="float32")(
            integers(3)
        )


@pytest.mark.parametrize("identity", [[0], b"0", 1j, object()])
def test_an_identity_that_is_neither_text_nor_a_number_is_refused(identity):
    with pytest.raises(TypeError, match="identity must be a str, int, float or None"):
        ew.ReductionKernel("T x", "T y", "x", "a + b", "y = a", identity)
