"""Kernels and a function for programs of JAX: XLA's CPU client calls them, on the emulator."""

from __future__ import annotations

import pytest

import culaunch as cl
from culaunch.testing import use_driver

SOURCE = """
#include <cuda_bf16.h>
#include <cuda_fp8.h>
template <class T> __global__ void scale(T* y, const T* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * a);
}
__global__ void add(float* y, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += value;
}
"""
TYPES = ("float", "double", "int", "long long", "__nv_bfloat16", "__nv_fp8_e4m3")


@pytest.fixture(scope="session")
def source():
    return SOURCE


@pytest.fixture(scope="session")
def jax_kernels():
    names = [f"scale<{kind}>" for kind in TYPES]
    with use_driver("emulator"):
        return cl.load(cl.compile(SOURCE, arch="compute_80", names=[*names, "add"]))


@pytest.fixture(autouse=True)
def on_emulator(emulated):
    """Every test here runs on the emulator."""


@pytest.fixture
def kernels(jax_kernels):
    return jax_kernels


@pytest.fixture
def scale(kernels):
    @cl.function
    def scale(x, factor: float):
        cl.check(x.ndim < 3, "x must have one or two dimensions")
        y = cl.empty_like(x)
        n = x.size
        launch = kernels[f"scale<{x.dtype}>"][cl.ceildiv(max(n, 1), 64), 64]
        launch(y, x, factor, n)
        return y

    return scale


@pytest.fixture
def bump(kernels):
    """Write its argument, and return it."""

    @cl.function
    def bump(cache, value: float):
        if cache.size > 0:
            kernels["add"][1, 64](cache, value, cache.size)
        return cache

    return bump


@pytest.fixture
def x():
    jax = pytest.importorskip("jax")
    return jax.numpy.arange(5, dtype=jax.numpy.float32)
