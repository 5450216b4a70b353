"""Tensor maps: what the driver is asked, in its own order, and what is refused before."""

import ctypes

import numpy as np
import pytest
from fake_arrays import ExchangeArray

import culaunch as cl


@pytest.fixture
def array(host_driver):
    return np.zeros((6, 16, 32), "f4")


def test_the_driver_s_order_is_reversed(host_driver, array):
    found = cl.arguments.TensorMap.tiled(
        array, (2, 8, 16), element_strides=(1, 2, 1), interleave="16B", swizzle="64B",
        l2_promotion="128B", fill="nan",
    )  # fmt: skip
    element, rank, address, *choices = host_driver.tensor_map[:7]
    assert (element, rank, address, choices) == (7, 3, array.ctypes.data, [1, 2, 2, 1])
    dims, strides, box, steps = host_driver.tensor_map[7:]
    assert dims == (32, 16, 6)
    assert strides == (128, 2048)  # in bytes, the innermost left out
    assert box == (16, 8, 2)
    assert steps == (1, 2, 1)
    assert bytes(found) == b"\x5a" * 128
    assert ctypes.sizeof(found) == 128
    assert found.array is array


def test_views_keep_their_strides(host_driver, array):
    view = array[1:, ::2, 8:24]
    cl.arguments.TensorMap.tiled(view, (1, 1, 16))
    assert host_driver.tensor_map[2] == view.ctypes.data
    assert host_driver.tensor_map[7:9] == ((16, 8, 5), (256, 2048))


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("u1", 0), ("i1", 0), ("?", 0), ("u2", 1), ("u4", 2), ("i4", 3), ("u8", 4), ("i8", 5),
     ("f2", 6), ("f4", 7), ("f8", 8)],
)  # fmt: skip
def test_every_element_type(host_driver, dtype, number):
    cl.arguments.TensorMap.tiled(np.zeros((8, 64), dtype), (8, 16))
    assert host_driver.tensor_map[0] == number


def test_bfloat16(host_driver):
    torch = pytest.importorskip("torch")
    cl.arguments.TensorMap.tiled(torch.zeros(8, 64, dtype=torch.bfloat16), (8, 16))
    assert host_driver.tensor_map[0] == 9


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_rank(host_driver, rank):
    cl.arguments.TensorMap.tiled(np.zeros((16,) * rank, "f4"), (4,) * rank)
    assert host_driver.tensor_map[1] == rank
    assert len(host_driver.tensor_map[8]) == rank - 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda array: cl.arguments.TensorMap.tiled(np.zeros((), "f4"), ()),
            "1 to 5 dimensions .got 0",
        ),
        (lambda array: cl.arguments.TensorMap.tiled(np.zeros((1,) * 6, "f4"), (1,) * 6), "got 6"),
        (
            lambda array: cl.arguments.TensorMap.tiled(np.zeros(16, "c8"), (4,)),
            "no elements of DLPack type 5",
        ),
        (
            lambda array: cl.arguments.TensorMap.tiled(array, (1, 1)),
            "one entry for each of the array's 3",
        ),
        (
            lambda array: cl.arguments.TensorMap.tiled(array, (1, 1, 1), element_strides=(1,)),
            "one entry",
        ),
        (lambda array: cl.arguments.TensorMap.tiled(array.T, (1, 1, 1)), "must be contiguous"),
        (
            lambda array: cl.arguments.TensorMap.tiled(array, (1, 1, 1), swizzle="big"),
            "swizzle must be one of",
        ),
        (
            lambda array: cl.arguments.TensorMap.tiled(array, (1, 1, 1), fill="one"),
            "fill must be one of",
        ),
        (
            lambda array: cl.arguments.TensorMap.tiled(array, (1, 1, 1), interleave="64B"),
            "interleave must be",
        ),
        (
            lambda array: cl.arguments.TensorMap.tiled(array, (1, 1, 1), l2_promotion=""),
            "l2_promotion must",
        ),
    ],
    ids=[
        "rank-0",
        "rank-6",
        "complex",
        "box",
        "steps",
        "strides",
        "swizzle",
        "fill",
        "inter",
        "l2",
    ],
)
def test_what_is_no_tensor_map(array, make, message):
    with pytest.raises(ValueError, match=message):
        make(array)


@pytest.mark.parametrize("box", [(2**32, 1, 1), (1, 2**32 + 1, 1), (-1, 1, 1), (2**70, 1, 1)])
def test_a_box_that_is_no_number_of_elements(array, box):
    with pytest.raises((ValueError, OverflowError)):
        cl.arguments.TensorMap.tiled(array, box)


@pytest.mark.parametrize("box", [("a", 1, 1), (1.5, 1, 1), (None, 1, 1)])
def test_a_box_of_another_type(array, box):
    with pytest.raises(TypeError):
        cl.arguments.TensorMap.tiled(array, box)


def test_what_is_no_array(host_driver):
    for value in (None, 5, [1, 2], "text"):
        with pytest.raises(TypeError, match="__dlpack__"):
            cl.arguments.TensorMap.tiled(value, (1,))


def test_what_the_driver_refuses(host_driver, array):
    host_driver.fail("cuTensorMapEncodeTiled", 1)
    with pytest.raises(cl.DriverError) as caught:
        cl.arguments.TensorMap.tiled(array, (1, 1, 1), swizzle="32B")
    text = str(caught.value)
    assert "shape (6, 16, 32), strides of (2048, 128) bytes, box (1, 1, 1), swizzle '32B'" in text
    assert "CUDA_ERROR_INVALID_VALUE (1)" in text
    assert (caught.value.code, caught.value.name) == (1, "CUDA_ERROR_INVALID_VALUE")


def test_a_driver_without_tensor_maps(install):
    driver = install(instead={"cuTensorMapEncodeTiled": 0})
    with pytest.raises(cl.DriverError, match=r"CUDA_ERROR_NOT_SUPPORTED \(801\)"):
        cl.arguments.TensorMap.tiled(ExchangeArray(), (4,))
    assert driver.launches == []
