"""A prefix sum of each row with CUB; what several kernels share is a header in memory.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

SOURCE = """
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include "sizes.h"

extern "C" __global__ void scan_rows(int* y, const int* x) {
  using Load = cub::BlockLoad<int, kThreads, kItems, cub::BLOCK_LOAD_TRANSPOSE>;
  using Store = cub::BlockStore<int, kThreads, kItems, cub::BLOCK_STORE_TRANSPOSE>;
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } box;
  int items[kItems];
  const int row = blockIdx.x * kThreads * kItems;
  Load(box.load).Load(x + row, items);
  __syncthreads();
  Scan(box.scan).InclusiveSum(items, items);
  __syncthreads();
  Store(box.store).Store(y + row, items);
}
"""
THREADS, ITEMS = 64, 4
sizes = f"constexpr int kThreads = {THREADS}, kItems = {ITEMS};\n"
# CUB is found by itself (pip's nvidia-cuda-cccl, or a toolkit's).
kernel = cl.load(cl.compile(SOURCE, headers={"sizes.h": sizes}))["scan_rows"]

x = np.random.default_rng(0).integers(0, 10, (3, THREADS * ITEMS)).astype(np.int32)
y = cl.empty(x.shape, "int32")
kernel[len(x), THREADS](y, cl.to_device(x))
assert np.array_equal(y.numpy(), x.cumsum(axis=1))
print("the rows sum up to", y.numpy()[:, -1].tolist())
