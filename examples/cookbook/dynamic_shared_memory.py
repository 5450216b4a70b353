"""Give a kernel as much shared memory as it asks for, beyond 48 KiB, too.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

SOURCE = """
// Each block reverses a tile, which lies in shared memory.
extern "C" __global__ void reverse_tiles(float* y, const float* x, int tile) {
  extern __shared__ float box[];
  const float* from = x + blockIdx.x * tile;
  for (int i = threadIdx.x; i < tile; i += blockDim.x) box[i] = from[i];
  __syncthreads();
  for (int i = threadIdx.x; i < tile; i += blockDim.x) {
    y[blockIdx.x * tile + i] = box[tile - 1 - i];
  }
}
"""
kernel = cl.load(cl.compile(SOURCE))["reverse_tiles"]
print("at most", kernel.attributes().max_dynamic_shared, "bytes for a block of this kernel")

for tile in (1000, 20_000):  # 4,000 bytes, and 80,000: what is past 48 KiB is opted in to
    x = np.arange(2 * tile, dtype=np.float32)
    y = cl.empty(2 * tile, np.float32)
    kernel[2, 256, 4 * tile](y, cl.to_device(x), tile)
    assert np.array_equal(y.numpy().reshape(2, tile), x.reshape(2, tile)[:, ::-1])
    blocks = kernel.occupancy(256, 4 * tile).active_blocks
    print(f"{4 * tile} bytes: {blocks} blocks at a time on a multiprocessor")

try:
    kernel[2, 256, 1 << 20](y, cl.to_device(x), tile)
except cl.LaunchError as error:
    print(str(error).splitlines()[-1])
