"""Compile CUDA source with NVRTC, load it and launch it.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

SOURCE = """
template <class T>
__global__ void scale(T* y, const T* x, T a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
"""

# For the current GPU. A second run of this program finds the image in the cache.
image = cl.compile(SOURCE, names=["scale<float>", "scale<double>"])
module = cl.load(image)

n = 1000
for dtype, name in ((np.float32, "scale<float>"), (np.float64, "scale<double>")):
    x = np.arange(n, dtype=dtype)
    y = cl.empty(n, dtype)
    kernel = module[name]
    kernel[(n + 255) // 256, 256](y, cl.to_device(x), 2.0, n)
    assert np.array_equal(y.numpy(), 2 * x)
    print(f"{name}: y[{n - 1}] = {y.numpy()[-1]}")

# The names travel with a file, too.
image.save(f"scale.{image.format}")
assert cl.load(f"scale.{image.format}")["scale<float>"].name == module["scale<float>"].name
