"""Shapes, strides, broadcasting, alignment and sizes, against NumPy."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import culaunch as cl
from culaunch import _core
from culaunch import elementwise as ew

mul_add = ew.fuse(lambda x, y, z: x * y + z)
widths = ew.fuse(lambda x, y: (x < y, x + y))
double = ew.fuse(lambda x: x + x)


@st.composite
def views(draw, shape):
    """Make a view of a shape, or of one that broadcasts to it, with any strides."""
    dims = [draw(st.sampled_from([n, n, n, 1])) for n in shape]
    drop = draw(st.integers(0, len(dims))) if draw(st.booleans()) else 0
    dims = dims[drop:]
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -2])) for _ in dims]
    order = draw(st.permutations(range(len(dims))))
    offset = draw(st.sampled_from([0, 0, 1, 3]))
    memory = [dims[axis] * abs(steps[axis]) for axis in order]
    total = int(np.prod(memory)) + offset
    base = np.arange(total, dtype=np.int32)[offset:].reshape(memory)
    base = base.transpose([list(order).index(axis) for axis in range(len(dims))])
    return base[(*(slice(None, None, step) for step in steps), ...)]


shapes = st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 8, 17, 20]), min_size=0, max_size=4).filter(
    lambda shape: np.prod(shape) < 3000
)


@st.composite
def problems(draw):
    shape = draw(shapes)
    return [draw(views(shape)) for _ in range(3)]


@pytest.mark.slow
@settings(max_examples=120)
@given(problems())
def test_any_layout(arrays):
    wanted = arrays[0] * arrays[1] + arrays[2]
    got = mul_add(*arrays)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.slow
@settings(max_examples=60)
@given(problems(), st.data())
def test_any_layout_of_out(arrays, data):
    wanted = arrays[0] * arrays[1] + arrays[2]
    shape = wanted.shape
    order = data.draw(st.permutations(range(len(shape))))
    steps = [data.draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
    memory = np.full([shape[a] * abs(steps[a]) for a in order], -1, np.int32)
    view = memory.transpose([list(order).index(a) for a in range(len(shape))])
    out = view[(*(slice(None, None, s) for s in steps), ...)]
    assert mul_add(*arrays, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    # Nothing beside out was written.
    assert np.count_nonzero(memory == -1) >= memory.size - wanted.size


@pytest.mark.parametrize("size", [*range(20), 31, 33, 255, 256, 257, 1023, 1024, 1025, 4099])
def test_sizes_around_the_vector_width(size):
    x = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(double(x), x + x)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float64", "complex128"])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 100])
def test_vector_widths_of_other_types(dtype, size):
    x = np.arange(size).astype(dtype)
    np.testing.assert_array_equal(double(x), x + x)


@pytest.mark.parametrize("size", [7, 64, 301])
def test_outputs_of_other_widths(size):
    x = np.arange(size, dtype=np.int64) % 7
    y = np.arange(size, dtype=np.int8) % 5
    less, total = widths(x, y)
    np.testing.assert_array_equal(less, x < y)
    np.testing.assert_array_equal(total, x + y)
    assert (less.dtype, total.dtype) == (np.bool_, np.int64)


@pytest.mark.parametrize("offset", [1, 2, 3, 4])
def test_misaligned_arrays_use_no_wide_loads(offset):
    memory = np.arange(200, dtype=np.float32)
    x = memory[offset : offset + 100]
    assert ("_x4" in double.source(x)) == (x.ctypes.data % 16 == 0)
    np.testing.assert_array_equal(double(x), x + x)


def test_the_output_lies_as_the_first_input_of_its_shape():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for view in (x, x.T, x.transpose(1, 0, 2), x.swapaxes(1, 2)):
        got = double(view)
        assert [s > 0 for s in got.strides] == [True] * 3
        assert np.argsort(got.strides).tolist() == np.argsort(view.strides).tolist()
        assert "contiguous" in double.source(view)
        np.testing.assert_array_equal(got, view + view)


def test_kernels_are_chosen_by_what_can_be_one_dimension():
    x = np.zeros((8, 64, 64), np.float32)
    name = functools.partial(_name, mul_add)
    assert name(x, x, x).endswith("contiguous_x4")
    assert name(x[:, :32], x[:, :32], x[:, :32], out=x[:, 32:]).endswith("strided2d_x4")
    assert name(x, x, x[0, 0]).endswith("strided2d_x4")
    assert name(x, x, x[..., :1]).endswith("strided2d_x4")
    assert name(x, x, x[..., ::2].repeat(2, -1)[..., ::-1]).endswith("strided2d")
    assert name(x, x.swapaxes(1, 2), x).endswith("tiled3d_x4")
    assert name(x[:, 1:, 1:], x.swapaxes(1, 2)[:, 1:, 1:], x[:, 1:, 1:]).endswith("tiled3d")


@pytest.mark.parametrize("size", [2, 100, 511, 512, 513, 4100, 40_000])
def test_small_arrays_are_spread_over_the_device(size):
    _core.Elementwise._set_busy_threads(512)
    x = np.arange(size, dtype=np.float32)
    vector, small = "" if size <= 512 else "_x4", "_small" if size <= 512 * 8 * 4 else ""
    assert _name(double, x).endswith(f"contiguous{vector}{small}")
    np.testing.assert_array_equal(double(x), x + x)
    rows = np.arange(4 * size).reshape(4, size)
    assert _name(double, rows[:, 1:]).endswith("_small") == (4 * (size - 1) <= 512 * 8)
    np.testing.assert_array_equal(double(rows[:, 1:]), 2 * rows[:, 1:])


def test_transposed_tiles_of_all_sizes():
    rng = np.random.default_rng(0)
    for shape in ((16, 16), (64, 64), (65, 130), (17, 200), (3, 40, 20)):
        x, y = (rng.integers(0, 99, shape).astype(np.int32) for _ in range(2))
        out = np.zeros_like(x)
        turned = np.ascontiguousarray(y.swapaxes(-1, -2)).swapaxes(-1, -2)
        assert "tiled" in _name(mul_add, turned, x, x, out=out)
        mul_add(turned, x, x, out=out)
        np.testing.assert_array_equal(out, y * x + x)


def test_many_dimensions():
    x = np.arange(2**7).reshape((2,) * 7)
    turned = x.transpose(6, 1, 4, 3, 0, 5, 2)
    np.testing.assert_array_equal(mul_add(x, turned, x[::-1]), x * turned + x[::-1])
    with pytest.raises(ValueError, match="argument x has 33 dimensions, but at most 32"):
        double(np.zeros((1,) * 33))


def test_empty_and_0d_arrays():
    for shape in ((0,), (3, 0, 2), (0, 0)):
        got = double(np.zeros(shape, np.float32))
        assert (got.shape, got.dtype) == (shape, np.float32)
    got = mul_add(np.zeros((0, 3)), np.zeros((1, 3)), np.float64(2))
    assert got.shape == (0, 3)
    got = double(np.array(2.5, np.float32))
    assert (got.shape, float(got)) == ((), 5.0)
    np.testing.assert_array_equal(
        mul_add(np.arange(5), np.array(2), np.array([3])), np.arange(5) * 2 + 3
    )


def test_read_only_inputs():
    x = np.arange(5, dtype=np.int32)
    x.flags.writeable = False
    np.testing.assert_array_equal(double(x), x + x)
    np.testing.assert_array_equal(double(np.broadcast_to(np.int32(3), (4, 5))), np.full((4, 5), 6))


def test_device_arrays():
    x = cl.to_device(np.arange(6, dtype=np.float32).reshape(2, 3))
    got = double(x)
    assert isinstance(got, cl.DeviceArray)
    np.testing.assert_array_equal(got.numpy(), x.numpy() * 2)


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_torch_tensors():
    import torch

    x = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    got = double(x.t())
    assert isinstance(got, torch.Tensor)
    assert got.stride() == x.t().stride()
    assert torch.equal(got, x.t() + x.t())
    assert torch.equal(double(x), x + x)


def test_64_bit_indices():
    """Indices are as wide as the strides need: memory that is reserved but never touched."""
    memory = np.zeros((1 << 31) + 64, np.int8)
    x = memory[:: 1 << 30]
    assert "long long" in double.source(x)
    memory[1 << 31] = 21
    assert double(x).tolist() == [0, 0, 42]


def _name(function, *args, out=None):
    return function.lower(*args, out=out).name
