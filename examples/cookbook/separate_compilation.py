"""Compile a kernel and a device function apart, and link them with link-time optimization.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

KERNEL = """
extern "C" __device__ float activation(float x);

extern "C" __global__ void apply(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = activation(x[i]);
}
"""
PLUGINS = {
    "relu": 'extern "C" __device__ float activation(float x) { return x > 0 ? x : 0; }',
    "square": 'extern "C" __device__ float activation(float x) { return x * x; }',
}
# On a GPU: its own architecture. lto=True keeps what the linker inlines across the parts;
# relocatable=True would be a call.
kernel = cl.compile(KERNEL, lto=True)

n = 100
x = np.linspace(-1, 1, n, dtype=np.float32)
for name, source in PLUGINS.items():
    image = cl.link([kernel, cl.compile(source, lto=True)])
    y = cl.empty(n)
    cl.load(image)["apply"][1, 128](y, cl.to_device(x), n)
    expected = np.maximum(x, 0) if name == "relu" else x * x
    assert np.allclose(y.numpy(), expected)
    print(f"{name}: {image.format} for {', '.join(image.arch)}, {len(image.data)} bytes")
