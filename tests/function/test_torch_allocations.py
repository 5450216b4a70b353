"""Allocations of a function for tensors of torch: the tensor itself, as torch makes it."""

from __future__ import annotations

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("torch")


@pytest.fixture
def empty(emulated):
    @cl.function
    def empty(x, rows: int, columns: int):
        return cl.empty((rows, columns), x.dtype, like=x)

    return empty


@pytest.mark.parametrize(
    "name",
    ["bool", "uint8", "int16", "int64", "uint32", "float16", "bfloat16", "float32", "float64",
     "complex64", "float8_e4m3fn", "float8_e5m2"],
)  # fmt: skip
def test_of_every_type(empty, name):
    import torch

    dtype = getattr(torch, name)
    made = empty(torch.zeros(2, dtype=dtype), 3, 5)
    assert (made.dtype, made.shape, made.stride()) == (dtype, (3, 5), (5, 1))
    assert made.storage_offset() == 0
    assert made.untyped_storage().nbytes() == 15 * dtype.itemsize
    assert made.device == torch.device("cpu")
    assert type(made) is torch.Tensor
    assert not made.requires_grad
    assert made.untyped_storage().resizable()  # torch's own memory, and no view of another's


def test_empty_ones(empty):
    import torch

    for shape in ((0, 5), (5, 0)):
        made = empty(torch.zeros(2), *shape)
        assert (made.shape, made.stride()) == (shape, torch.empty(shape).stride())


def test_in_inference_mode(empty):
    import torch

    with torch.inference_mode():
        assert empty(torch.zeros(2), 1, 2).is_inference()
    assert not empty(torch.zeros(2), 1, 2).is_inference()


def test_what_is_dropped_is_freed(empty):
    import gc
    import weakref

    import torch

    made = empty(torch.zeros(2), 100, 100)
    dies = weakref.ref(made)
    del made
    gc.collect()
    assert dies() is None
