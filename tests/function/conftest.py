"""Functions whose programs are put in by hand, on a recording driver; bodies, on the emulator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "launch"))

from recorders import driver, host_driver, install  # noqa: F401 - fixtures

import culaunch as cl
from culaunch.testing import use_driver

# ---- bodies

SOURCE = """
#include <cuda_fp16.h>
template <class T> __global__ void scale(T* y, const T* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * a);
}
template <class T> __global__ void fill(T* y, T value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = value;
}
// What its arguments are, in a row of eight numbers.
extern "C" __global__ void note(
    double* out, long long a, long long b, long long c, double d, double e, int f, bool g) {
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f; out[6] = g;
  out[7] = gridDim.x;
}
extern "C" __global__ void small(int* y, signed char a, unsigned char b, unsigned short c) {
  if (threadIdx.x == 0) { y[0] = a; y[1] = b; y[2] = c; }
}
struct Params { int n; float scale; float* y; const float* x; long long step; bool on; };
extern "C" __global__ void structured(Params p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) p.y[i] = p.on ? p.x[i * p.step] * p.scale : 0.f;
}
struct Two { int values[6]; };
extern "C" __global__ void ends(int* y, Two two) {
  for (int i = 0; i < 6; ++i) y[i] = two.values[i];
}
extern "C" __global__ void copy(float* y, const float* x, long long sx, long long sy, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i * sy] = x[i * sx];
}
extern "C" __global__ void shared(int* y) {
  extern __shared__ int values[];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void sum(float* total, const float* const* rows, int n) {}
"""


@pytest.fixture(scope="session")
def image():
    names = [f"{name}<{kind}>" for name in ("scale", "fill") for kind in ("float", "double", "int")]
    return cl.compile(SOURCE, arch="compute_80", names=[*names, "scale<__half>"])


@pytest.fixture(scope="session")
def module(image):
    with use_driver("emulator"):  # only here: the fixture outlives the tests of this folder
        return cl.load(image)


@pytest.fixture
def kernels(emulated, module):
    """The kernels of SOURCE, on the emulator."""
    return module
