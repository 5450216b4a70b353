"""A function as a shared library: it needs neither culaunch nor Python afterwards.

PyTorch, JAX, CuPy, C++ and Rust load it through Apache TVM-FFI.
"""

# needs g++
# needs nvrtc
# needs tvm_ffi

import numpy as np
import tvm_ffi

import culaunch as cl

SOURCE = """
template <class T> __global__ void scale(T* y, const T* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}
"""
kernels = cl.load(cl.compile(SOURCE, names=["scale<float>", "scale<double>"]))


@cl.function
def scale(x: cl.Array("float32 | float64", "n"), factor: float):
    """y = x * factor."""
    cl.check(x.is_contiguous(), "x must be contiguous")
    y = cl.empty_like(x)
    n = x.size
    blocks = cl.ceildiv(n, 256)
    cl.launch_if(n > 0, kernels[f"scale<{x.dtype}>"][blocks, 256], y, x, factor, n)
    return y


# Both element types that the annotation names, and both sides of every branch.
scale.specialize()
cl.ship.export([scale], "libmylib.so")

library = tvm_ffi.load_module("./libmylib.so")
x = cl.to_device(np.arange(1000, dtype=np.float32))
y = library.scale(x, 2.0)
assert np.array_equal(y.numpy(), 2 * np.arange(1000))

# The same, written to an array of the caller, as JAX and NumPy need it.
library.scale_into(y, x, 3.0)
assert np.array_equal(y.numpy(), 3 * np.arange(1000))

print(scale.source("c++"))
print("libmylib.so gives what the function gives")
