"""Functions to save, on the emulator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import culaunch as cl
from culaunch.testing import use_driver

sys.path.insert(0, str(Path(__file__).parent))

SOURCE = """
template <class T> __global__ void scale(T* y, const T* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * a);
}
extern "C" __global__ void fill(int* y, int value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = value;
}
extern "C" __global__ void times(float* y, const float* x, const float* factors, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factors[i];
}
struct Params { int n; float scale; float* y; const float* x; };
extern "C" __global__ void structured(Params p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) p.y[i] = p.x[i] * p.scale;
}
"""


@pytest.fixture(scope="session")
def image():
    return cl.compile(SOURCE, arch="compute_80", names=["scale<float>", "scale<double>"])


@pytest.fixture(scope="session")
def module(image):
    with use_driver("emulator"):  # only here: the fixture outlives the tests of this folder
        return cl.load(image)


@pytest.fixture
def kernels(emulated, module):
    return module


@pytest.fixture
def scale(kernels):
    @cl.function
    def scale(x: cl.Array("float32 | float64", "n"), factor: float, twice: bool = False):
        """y = x * factor.

        Parameters
        ----------
        x : array
        factor : float
        """
        cl.check(x.is_contiguous(), "x must be contiguous")
        y = cl.empty_like(x)
        n = x.shape[0]
        if n == 0:
            return y
        block = 128 if n % 4 == 0 else 64
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, block), block](y, x, factor, n)
        if twice:
            kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, block), block](y, y, 2.0, n)
        return y

    return scale
