"""A cubin embedded in C++, from a string.

# needs tvm_ffi
# needs nvrtc
# needs g++
"""

from pathlib import Path

import numpy as np

import culaunch as cl

# The image: here with NVRTC; nvcc's, Triton's or a file's does as well.
image = cl.compile(Path(__file__).with_name("add_one.cu"))

CODE = """
CULAUNCH_EMBED_CUBIN(my_kernels);

void add_one(tvm::ffi::TensorView y, tvm::ffi::TensorView x) {
  CULAUNCH_CHECK_DEVICE(x);
  CULAUNCH_CHECK_DTYPE(x, culaunch::ffi::kFloat32);
  CULAUNCH_CHECK_SAME_SHAPE(y, x);
  const int n = static_cast<int>(x.numel());
  const unsigned block = 256, grid = (n + block - 1) / block;
  const culaunch::LaunchConfig config(grid, block, 0, culaunch::ffi::CurrentStream(x));
  CULAUNCH_GET_KERNEL(my_kernels, "add_one")
  (config, culaunch::ffi::Data(y), culaunch::ffi::Data(x), n);
}
"""
library = cl.cpp.load_inline(
    "embedded", CODE, functions="add_one", embed_cubin={"my_kernels": image}
)

x = cl.to_device(np.arange(1000, dtype=np.float32))
y = cl.empty(1000, np.float32)
library.add_one(y, x)
assert np.array_equal(y.numpy(), np.arange(1000) + 1)
print("add_one from C++ with an embedded cubin:", y.numpy()[:4])
