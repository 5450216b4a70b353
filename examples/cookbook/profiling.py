"""Make a program easy to profile: kernels with names, line numbers, and ranges on request.

nsys profile -t cuda,nvtx python profiling.py --ranges
ncu --set full -k regex:axpy --import-source on python profiling.py

# needs nvrtc
"""

import contextlib
import importlib.util
import sys

import numpy as np

import culaunch as cl

SOURCE = """
template <typename T>
__global__ void axpy(T* y, const T* x, T a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""
# Profilers show a kernel by its name in the image, so an instance of a template shows its types.
# With line_info=True, ncu shows the source beside its samples. The machine code stays the same.
image = cl.compile(SOURCE, names=["axpy<float>"], line_info=True, name="axpy.cu")
axpy = cl.load(image)["axpy<float>"]


def annotate(name):
    """Return an NVTX range around a block, where --ranges asks for it and `pip install nvtx` is."""
    if "--ranges" in sys.argv and importlib.util.find_spec("nvtx"):
        import nvtx

        return nvtx.annotate(name)
    return contextlib.nullcontext()


n = 10_000
x, y = cl.to_device(np.ones(n, np.float32)), cl.zeros(n, "float32")
with annotate("warm up"):  # the first launch loads the kernel
    axpy[cl.ceildiv(n, 256), 256](y, x, 1.0, n)
with annotate("steps"):
    launcher = axpy.configure(grid=cl.ceildiv(n, 256), block=256)
    for step in range(3):
        with annotate(f"step {step}"):
            launcher(y, x, 2.0, n)
cl.synchronize()
assert (y.numpy() == 7).all()

# Without a profiler: times by events, and what the kernel uses.
timing = cl.profile.benchmark(launcher, y, x, 0.0, n, repeat=3, bytes=12 * n, flops=2 * n)
print(timing)
print(axpy.attributes())
