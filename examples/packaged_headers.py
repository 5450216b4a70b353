"""Compile with device headers that a Python package ships: no path on disk is needed.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

# The package next to this file; an installed one, or one in a zip, works the same way.
HEADERS = cl.compiling.Headers.from_package("vector_kernels", "include")

SOURCE = """
#include <vector_kernels/axpy.cuh>

extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  vector_kernels::axpy(a, x, y, n);
}
"""

image = cl.compile(SOURCE, headers=HEADERS)
axpy = cl.load(image)["axpy"]

n = 500
x, y = np.arange(n, dtype=np.float32), np.ones(n, dtype=np.float32)
result = cl.to_device(y)
axpy[2, 256](3.0, cl.to_device(x), result, n)
assert np.array_equal(result.numpy(), 3 * x + y)
print(f"headers: {', '.join(HEADERS)}")
print(f"parameters of axpy: {', '.join(image.signatures['axpy'])}")
