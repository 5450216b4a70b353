"""Fill a table in constant memory, read it back, and use it in a kernel.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

SOURCE = """
namespace filters { __constant__ float weights[5]; }

extern "C" __global__ void smooth(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = -2; k <= 2; ++k) {
    int at = min(max(i + k, 0), n - 1);
    sum += filters::weights[k + 2] * x[at];
  }
  y[i] = sum;
}
"""
module = cl.load(cl.compile(SOURCE))
weights = module.get_global("filters::weights")  # its name in the source

weights.write(np.array([1, 4, 6, 4, 1], np.float32) / 16)
assert weights.read("float32").sum() == 1

n = 1000
x = cl.to_device(np.ones(n, np.float32))
y = cl.empty(like=x)
module["smooth"][cl.ceildiv(n, 256), 256](y, x, n)
assert (y.numpy() == 1).all()

# Another table for the next launch; a part of it through an array over the variable.
weights.as_array(dtype="float32")[2:3].fill(0)
module["smooth"][cl.ceildiv(n, 256), 256](y, x, n)
print("without the middle weight:", y.numpy()[500])
assert y.numpy()[500] == 0.625
