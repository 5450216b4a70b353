"""Whole kernels of nvcc's kind: both engines leave the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_internals import CompiledKernel

import culaunch as cl
from culaunch import testing

pytestmark = [pytest.mark.needs("gcc"), pytest.mark.slow]

SOURCE = """
extern "C" __global__ void divergent(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  for (int k = 0; k < i % 37; ++k) {
    if (v > 2) { v = sqrtf(v); continue; }
    switch (k & 3) {
      case 0: v = v * 1.5f + 1; break;
      case 1: v = __sinf(v) + 2; break;
      case 2: v = exp2f(v) / 3; break;
      default: v = fabsf(v) + __logf(v * v + 1);
    }
  }
  y[i] = v;
}
extern "C" __global__ void reduce(float* y, const float* x, int n) {
  __shared__ float box[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = i < n ? x[i] : 0;
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) box[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? box[threadIdx.x] : 0;
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    unsigned votes = __ballot_sync(~0u, sum > 0);
    if (threadIdx.x == 0) { y[blockIdx.x] = sum; y[gridDim.x + blockIdx.x] = __popc(votes); }
  }
}
extern "C" __global__ void doubles(double* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double local[8];
  for (int k = 0; k < 8; ++k) local[(k * 5 + i) % 8] = x[(i + k) % n] / (k + 1.0);
  double sum = 0;
  for (int k = 0; k < 8; ++k) sum = fma(sum, 0.75, local[k]);
  if (i < n) y[i] = sqrt(sum * sum + 1) + exp(-sum);
}
extern "C" __global__ void bins(unsigned* y, const float* x, int n) {
  __shared__ unsigned box[64];
  if (threadIdx.x < 64) box[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&box[(int)(x[i] * 16) & 63], 1u);
  __syncthreads();
  if (threadIdx.x < 64) atomicMax(&y[threadIdx.x], box[threadIdx.x]);
}
__constant__ int table[4] = {3, 1, 4, 1};
__device__ unsigned long long seen;
extern "C" __global__ void words(unsigned* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = __float_as_uint(x[i]);
  v = __byte_perm(v, i, 0x3614) ^ __brev(v) ^ __umulhi(v, 0x9E3779B9) ^ __funnelshift_l(v, i, i);
  unsigned long long w = (unsigned long long)v * v / (i + 1) + __ffs(v) + __clz(v);
  atomicAdd(&seen, w);
  y[i] = (unsigned)(w % 1000003) + table[i & 3];
}
"""


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("divergent", "f4"), ("reduce", "f4"), ("doubles", "f8"), ("bins", "u4"), ("words", "u4")],
)
def test_both_engines(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    run = CompiledKernel.run

    def note(self: CompiledKernel, *arguments: Any, **options: Any) -> bool:
        ran.append(run(self, *arguments, **options))
        return ran[-1]

    monkeypatch.setattr(CompiledKernel, "run", note)
    x = np.random.default_rng(2).standard_normal(4096).astype("f4")
    results = []
    with testing.use_driver("emulator"):
        image = cl.compile(SOURCE, arch="compute_80", name="kernels.cu")
        for engine in ("numpy", "compiled"):
            monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", engine)
            y = np.zeros(4096, dtype)
            cl.load(image)[name][16, 256](y, x, 4096)
            results.append(y.tobytes())
    assert ran == [True]
    assert any(results[0])
    assert results[0] == results[1]
