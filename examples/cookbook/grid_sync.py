"""Let all blocks of a grid wait for each other: a cooperative launch.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

SOURCE = """
#include <cooperative_groups.h>

extern "C" __global__ void normalise(float* x, float* partial, int n) {
  auto grid = cooperative_groups::this_grid();
  const int rank = grid.thread_rank(), count = grid.num_threads();
  float sum = 0;
  for (int i = rank; i < n; i += count) sum += x[i];
  atomicAdd(partial, sum);
  grid.sync();  // every block has added its part
  for (int i = rank; i < n; i += count) x[i] /= *partial;
}
"""
kernel = cl.load(cl.compile(SOURCE))["normalise"]

# All blocks must be resident at once: as many as fit the device, and no more.
block = 128
blocks = kernel.occupancy(block).active_blocks
grid = min(8, blocks * cl.driver.devices()[0].attribute("multiprocessor_count"))

n = 10_000
x = cl.to_device(np.ones(n, np.float32))
kernel.launch(x, cl.zeros(1, "float32"), n, grid=grid, block=block, cooperative=True)
assert np.allclose(x.numpy(), 1 / n)
print(f"{grid} blocks of {block} threads made {n} numbers sum up to {x.numpy().sum():.3f}")
