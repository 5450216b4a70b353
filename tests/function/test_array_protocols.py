"""A function takes every array that a launch takes, whatever protocol it has."""

from __future__ import annotations

import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew


class HostInterface:
    """An array with nothing but ``__array_interface__``."""

    def __init__(self, array):
        self._array = array

    @property
    def __array_interface__(self):
        return self._array.__array_interface__


class CudaInterface:
    """An array with nothing but ``__cuda_array_interface__``, in version 2 or 3."""

    def __init__(self, array, version=3):
        self._array, self._version = array, version

    @property
    def __cuda_array_interface__(self):
        return {**self._array.__cuda_array_interface__, "version": self._version}


def row_sums(x):
    return ew.sum(x, axis=-1)


def doubled(kernels):
    def body(x):
        y = cl.empty_like(x)
        kernels.kernel("scale<float>")[1, 128](y, x, 2.0, x.size)
        return y

    return cl.function(body)


def test_an_array_with_the_host_interface_alone(kernels):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    call = doubled(kernels)
    for values in (x, 3 * x):  # recorded, then native
        np.testing.assert_array_equal(call(HostInterface(values)).numpy(), 2 * values)
        np.testing.assert_array_equal(
            ew.fuse(row_sums)(HostInterface(values)).numpy(), values.sum(-1)
        )


def test_its_strides_are_read(emulated):
    x = np.arange(12, dtype=np.float32).reshape(3, 4).T
    np.testing.assert_array_equal(ew.fuse(row_sums)(HostInterface(x)).numpy(), x.sum(-1))


def test_what_is_not_an_array_is_named(emulated):
    with pytest.raises(TypeError, match="argument x must be an array"):
        ew.fuse(row_sums)(object())


@pytest.mark.gpu
@pytest.mark.needs("torch")
@pytest.mark.parametrize("version", [2, 3])
def test_an_array_with_the_cuda_interface_alone(version):
    import torch

    x = torch.arange(12.0, device="cuda").reshape(3, 4)
    for values in (x, x.T):
        got = ew.fuse(row_sums)(CudaInterface(values, version))
        np.testing.assert_array_equal(got.numpy(), values.sum(-1).cpu().numpy())
    image = cl.compile(
        'extern "C" __global__ void twice(float* y, const float* x, int n) {'
        " int i = threadIdx.x; if (i < n) y[i] = 2 * x[i]; }"
    )
    twice = cl.load(image).kernel("twice")

    @cl.function
    def call(x):
        y = cl.empty_like(x)
        twice[1, 32](y, x, x.size)
        return y

    for values in (x, 3 * x):
        got = call(CudaInterface(values, version))
        np.testing.assert_array_equal(got.numpy(), 2 * values.cpu().numpy())
