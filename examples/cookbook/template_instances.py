"""Compile a template for several types and sizes, and choose the instance by the array.

# needs nvrtc
"""

import itertools

import numpy as np

import culaunch as cl

SOURCE = """
#include <cuda_fp16.h>

template <typename T, int kUnroll>
__global__ void scale(T* y, const T* x, float factor, int n) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * kUnroll;
  for (int i = first; i < min(first + kUnroll, n); ++i) y[i] = T(float(x[i]) * factor);
}
"""
CPP = {"float16": "__half", "float32": "float", "float64": "double"}
UNROLLS = (1, 4)

names = [f"scale<{cpp}, {unroll}>" for cpp, unroll in itertools.product(CPP.values(), UNROLLS)]
module = cl.load(cl.compile(SOURCE, names=names))


def scale(x, factor):
    """Return x * factor."""
    n, block = x.size, 128
    unroll = 4 if n >= 512 else 1
    y = cl.empty(like=x)
    kernel = module[f"scale<{CPP[x.dtype.name]}, {unroll}>"]  # as it was named above
    kernel[cl.ceildiv(n, block * unroll), block](y, x, factor, n)
    return y


for dtype, n in itertools.product(CPP, (100, 1000)):
    x = np.arange(n).astype(dtype)
    assert np.array_equal(scale(cl.to_device(x), 0.5).numpy(), (x * 0.5).astype(dtype))
print(f"{len(module)} instances:", *sorted(kernel.demangled.partition("(")[0] for kernel in module))
