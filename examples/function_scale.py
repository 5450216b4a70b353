"""A function over one kernel, for three element types: one declaration, every framework."""

import numpy as np

import culaunch as cl

kernels = cl.load(
    cl.compile(
        """
#include <cuda_fp16.h>
template <class T> __global__ void scale(T* y, const T* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * factor);
}""",
        names=["scale<float>", "scale<double>", "scale<__half>"],
    )
)


@cl.function
def scale(x: cl.Array("float16 | float32 | float64"), factor: float):
    """y = x * factor."""
    cl.check(x.is_contiguous(), "x must be contiguous")
    y = cl.empty_like(x)
    n = x.size
    cl.launch_if(n > 0, kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, 256), 256], y, x, factor, n)
    return y


for dtype in ("float16", "float32", "float64"):
    for shape in ((1000,), (4, 5), (0,)):
        x = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
        y = scale(cl.to_device(x), 0.5)
        np.testing.assert_array_equal(y.numpy(), x * np.dtype(dtype).type(0.5))
print(scale)
print(scale.explain(cl.to_device(np.ones(1000, np.float32)), 0.5))
