"""A kernel made at run time: NVRTC compiles it, Python and C++ launch it.

# needs tvm_ffi
# needs nvrtc
# needs g++
"""

import numpy as np

import culaunch as cl

# The element type and the operation are known only now.
SOURCE = """
template <class T>
__global__ void apply(T* y, const T* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = OPERATION(x[i]);
}
"""
image = cl.compile(SOURCE, names=["apply<float>"], defines={"OPERATION": "sqrtf"})
x = cl.to_device(np.arange(1000, dtype=np.float32))
y = cl.empty(1000, np.float32)

# From Python, by the name expression.
cl.load(image)["apply<float>"][4, 256](y, x, 1000)
assert np.allclose(y.numpy(), np.sqrt(np.arange(1000)))

# From C++ by the same name, which the image carries.
CODE = """
CULAUNCH_EMBED_CUBIN(made);

void apply(tvm::ffi::TensorView y, tvm::ffi::TensorView x) {
  const int n = static_cast<int>(x.numel());
  CULAUNCH_GET_KERNEL(made, "apply<float>")
  ({(n + 255u) / 256, 256, 0, culaunch::ffi::CurrentStream(x)}, culaunch::ffi::Data(y),
   culaunch::ffi::Data(x), n);
}
"""
library = cl.cpp.load_inline("nvrtc", CODE, functions="apply", embed_cubin={"made": image})
y = cl.empty(1000, np.float32)
library.apply(y, x)
assert np.allclose(y.numpy(), np.sqrt(np.arange(1000)))
print("sqrt, compiled and launched:", y.numpy()[:4])
