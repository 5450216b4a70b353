"""A reduction in two kernels with scratch memory, and one if an array is small."""

import numpy as np

import culaunch as cl

BLOCK = 256
kernels = cl.load(
    cl.compile(
        """
// Every block adds up its part of x: a grid of one makes the whole sum.
extern "C" __global__ void sum(float* out, const float* x, int n) {
  __shared__ float parts[256];
  float total = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    total += x[i];
  }
  parts[threadIdx.x] = total;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = parts[0];
}"""
    )
)


@cl.function
def total(x: cl.Array("float32", "n")):
    """The sum of x, as an array without dimensions."""
    n = x.shape[0]
    result = cl.zeros((), x.dtype)
    if n <= 4 * BLOCK:
        cl.launch_if(n > 0, kernels["sum"][1, BLOCK], result, x, n)
        return result
    blocks = min(cl.ceildiv(n, 4 * BLOCK), 2 * x.device.attribute("multiprocessor_count"))
    scratch = cl.empty(blocks, x.dtype)  # freed in the order of the stream, after both launches
    kernels["sum"][blocks, BLOCK](scratch, x, n)
    kernels["sum"][1, BLOCK](result, scratch, blocks)
    return result


for n in (0, 1, 1000, 5000, 20000):
    x = np.arange(n, dtype=np.float32) % 5
    assert total(cl.to_device(x)).numpy() == x.sum()
print(total.explain(cl.to_device(x)))
