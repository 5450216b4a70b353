"""A matrix product with tensor maps as one function: the maps are encoded natively in each call.

# needs a GPU
"""

import numpy as np

import culaunch as cl

TILE = 64
SOURCE = """
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

__device__ unsigned shared_address(const void* pointer) {
  return (unsigned)__cvta_generic_to_shared(pointer);
}
// Copy the box at (row, column) into shared memory, by the tensor memory accelerator.
__device__ void copy_box(const TensorMap& map, void* to, int row, int column, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)), "l"(&map), "r"(column), "r"(row),
      "r"(barrier) : "memory");
}
__device__ void wait(unsigned barrier, unsigned parity) {
  unsigned ready = 0;
  while (ready == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.b32 %0, 1, 0, p; }" : "=r"(ready) : "r"(barrier), "r"(parity) : "memory");
  }
}
// c = a b^T + bias: a is [m, k], b is [n, k], of half precision; a block makes 64 by 64 of c. While
// one stage is multiplied, the next one is on its way.
extern "C" __global__ void __launch_bounds__(128) gemm(
    const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, float* c,
    const float* bias, int m, int n, int k) {
  __shared__ alignas(1024) unsigned short a[2][64 * 64], b[2][64 * 64];
  __shared__ alignas(8) unsigned long long barriers[2];
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
  const unsigned done[2] = {shared_address(&barriers[0]), shared_address(&barriers[1])};
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(done[i]));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int steps = (k + 63) / 64;
  auto load = [&](int step) {
    const int stage = step % 2;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16384;" ::"r"(done[stage])
                 : "memory");
    copy_box(a_map, a[stage], row, step * 64, done[stage]);
    copy_box(b_map, b[stage], column, step * 64, done[stage]);
  };
  if (threadIdx.x == 0) load(0);
  float sums[8][4] = {};
  for (int step = 0; step < steps; ++step) {
    const int stage = step % 2;
    if (threadIdx.x == 0 && step + 1 < steps) load(step + 1);
    wait(done[stage], step / 2 % 2);
    auto word = [&](const unsigned short* tile, int r, int at) {
      return *(const unsigned*)(tile + r * 64 + at);
    };
    for (int at = 2 * pair; at < 64; at += 16) {
      const int r = warp * 16 + group;
      const unsigned a0 = word(a[stage], r, at), a1 = word(a[stage], r + 8, at);
      const unsigned a2 = word(a[stage], r, at + 8), a3 = word(a[stage], r + 8, at + 8);
      for (int i = 0; i < 8; ++i) {
        const unsigned b0 = word(b[stage], 8 * i + group, at);
        const unsigned b1 = word(b[stage], 8 * i + group, at + 8);
        float* s = sums[i];
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 4; ++j) {
      const int r = row + warp * 16 + group + j / 2 * 8, at = column + 8 * i + 2 * pair + j % 2;
      if (r < m && at < n) c[(long long)r * n + at] = sums[i][j] + (bias ? bias[at] : 0.f);
    }
  }
}
"""


def make_gemm(kernel):
    """Return the function over the compiled kernel."""

    @cl.function
    def gemm(
        a: cl.Array("float16", "m k"),
        b: cl.Array("float16", "n k"),
        bias: cl.Array("float32", "n") | None = None,
    ):
        """a @ b.T + bias; rows may lie apart, and are multiples of 16 bytes."""
        (m, k), n = a.shape, b.shape[0]
        cl.check((a.strides[0] % 8 == 0) & (b.strides[0] % 8 == 0), "rows must be 16 bytes apart")
        cl.check(a.is_aligned(16) & b.is_aligned(16), "arrays must begin at multiples of 16 bytes")
        c = cl.empty((m, n), "float32")
        a_map, b_map = (cl.arguments.TensorMap.tiled(one, box=(TILE, 64)) for one in (a, b))
        grid = cl.ceildiv(n, TILE), cl.ceildiv(m, TILE)
        kernel[grid, 128](a_map, b_map, c, bias, m, n, k)
        return c

    return gemm


if __name__ == "__main__":
    gemm = make_gemm(cl.load(cl.compile(SOURCE, arch="sm_90a"))["gemm"])
    random = np.random.default_rng(0)
    for m, n, k in ((128, 64, 64), (100, 72, 200), (1, 8, 8), (513, 1000, 512)):
        a = random.standard_normal((m, k)).astype(np.float16)
        b = random.standard_normal((n, k)).astype(np.float16)
        bias = random.standard_normal(n).astype(np.float32)
        expected = a.astype(np.float32) @ b.astype(np.float32).T
        result = gemm(cl.to_device(a), cl.to_device(b))
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-3, atol=1e-2)
        result = gemm(cl.to_device(a), cl.to_device(b), cl.to_device(bias))
        np.testing.assert_allclose(result.numpy(), expected + bias, rtol=1e-3, atol=1e-2)
    print(gemm.explain(cl.to_device(a), cl.to_device(b), cl.to_device(bias)))
