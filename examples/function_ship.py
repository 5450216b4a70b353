"""Save a function to a library, use it without its source, and make a wheel of it.

Without a GPU: CULAUNCH_DRIVER=emulator python examples/function_ship.py
"""

import numpy as np

import culaunch as cl

SOURCE = """
template <class T> __global__ void scale(T* y, const T* x, T factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}
"""
# A fatbin, cl.compile(..., arch=["sm_90", "sm_100"]), has code for several architectures.
kernels = cl.load(cl.compile(SOURCE, names=["scale<float>", "scale<double>"]))


@cl.function
def scale(x: cl.Array("float32 | float64", "n"), factor: float):
    """Return x * factor."""
    cl.check(x.is_contiguous(), "x must be contiguous")
    y = cl.empty_like(x)
    n = x.size
    if n > 0:
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, 256), 256](y, x, factor, n)
    return y


scale.specialize()  # both element types, both sides of n > 0: nothing is launched
cl.ship.save([scale], "scale.culib")

# From here on nothing above is needed.
lib = cl.ship.load_library("scale.culib")
print(lib)
x = cl.to_device(np.arange(1000, dtype=np.float32))
assert np.array_equal(lib.scale(x, 3.0).numpy(), 3 * np.arange(1000, dtype=np.float32))
assert lib.scale(cl.empty(0, "float64"), 3.0).size == 0

wheel = cl.ship.package("scale.culib", name="scale-kernels", version="1.0")
print(f"{wheel}: pip installs it, and import scale_kernels has scale(x, factor)")
