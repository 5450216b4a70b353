"""Sum an array with CUB, whose headers are found with no setup.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

SOURCE = """
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void block_sums(const float* x, float* sums, int n) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = Reduce(storage).Sum(i < n ? x[i] : 0.0f);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
"""

image = cl.compile(SOURCE)
block_sums = cl.load(image)["block_sums"]

n, block = 1000, 128
grid = (n + block - 1) // block
x = np.arange(n, dtype=np.float32)
sums = cl.empty(grid, np.float32)
block_sums[grid, block](cl.to_device(x), sums, n)
assert sums.numpy().sum() == x.sum()
print(f"the sum of {n} numbers is {sums.numpy().sum():.0f}")
