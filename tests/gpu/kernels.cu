// The kernels of the tests on a GPU: each does one thing whose result a test can foretell.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct Params {
  int count;
  float scale;
  double offset;
  unsigned char tag[16];
};

struct Large {
  unsigned char bytes[3000];
};

struct Largest {
  unsigned char bytes[32000];
};

// The value of each scalar parameter, side by side, aligned as in a C struct.
struct Scalars {
  signed char a;
  unsigned char b;
  short c;
  unsigned short d;
  int e;
  unsigned f;
  long long g;
  unsigned long long h;
  float i;
  double j;
  bool k;
  __half l;
  __nv_bfloat16 m;
  const void* n;
};

__device__ int counter;
__constant__ float factor;

template <class T>
__global__ void scale(T* y, const T* x, T a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}

extern "C" {

__global__ void echo(void* out, signed char a, unsigned char b, short c, unsigned short d, int e,
                     unsigned f, long long g, unsigned long long h, float i, double j, bool k,
                     __half l, __nv_bfloat16 m, const void* n) {
  *static_cast<Scalars*>(out) = {a, b, c, d, e, f, g, h, i, j, k, l, m, n};
}

__global__ void echo_params(Params* out, Params params) { *out = params; }

__global__ void sum_large(int* out, Large large, int last) {
  int sum = last;
  for (int i = 0; i < 3000; ++i) sum += large.bytes[i];
  *out = sum;
}

__global__ void sum_largest(int* out, Largest largest, int last) {
  int sum = last;
  for (int i = 0; i < 32000; ++i) sum += largest.bytes[i];
  *out = sum;
}

__global__ void is_null(int* out, const float* pointer) { *out = pointer == nullptr; }

__global__ void nothing() {}

__global__ void poke(int* address, int value) { *address = value; }

__global__ void add(int* out, int value) { atomicAdd(out, value); }

__global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

__global__ void use_globals(float* out) { *out = factor * counter; }

// The sum of what every word of the block's dynamic shared memory was given.
__global__ void fill_shared(unsigned long long* out, int words) {
  extern __shared__ unsigned memory[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) memory[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned long long sum = 0;
    for (int i = 0; i < words; ++i) sum += memory[i];
    *out = sum;
  }
}

__global__ void __launch_bounds__(256) at_most_256(int* out) { *out = blockDim.x; }

// Each block adds the first phase's total, which is complete only after a grid-wide barrier.
__global__ void two_phases(int* total, int* out) {
  if (threadIdx.x == 0) atomicAdd(total, 1);
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *total;
}

#if __CUDA_ARCH__ >= 900

// The size of each block's cluster, and the sum of the ranks that its blocks wrote to its first.
__global__ void cluster_ranks(int* sizes, int* sums) {
  __shared__ int sum;
  auto cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  cluster.sync();
  if (threadIdx.x == 0) atomicAdd(cluster.map_shared_rank(&sum, 0), cluster.block_rank());
  cluster.sync();
  if (threadIdx.x == 0) {
    sizes[blockIdx.x] = cluster.num_blocks();
    sums[blockIdx.x] = cluster.block_rank() == 0 ? sum : -1;
  }
}

__global__ void __cluster_dims__(2, 1, 1) own_cluster(int* sizes) {
  if (threadIdx.x == 0) sizes[blockIdx.x] = cooperative_groups::this_cluster().num_blocks();
}

// Waits for the kernel before it (programmatic dependent launch), then adds one.
__global__ void wait_and_add(int* value) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (threadIdx.x == 0) *value += 1;
  asm volatile("griddepcontrol.launch_dependents;");
}

struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

// Copy the box of 8 rows of 32 floats at (row, column), by the tensor memory accelerator.
__global__ void copy_box(const __grid_constant__ TensorMap map, float* out, int row, int column) {
  __shared__ alignas(1024) float tile[8 * 32];
  __shared__ alignas(8) unsigned long long barrier;
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  const auto done = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(done));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(done) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(&map), "r"(column), "r"(row), "r"(done)
        : "memory");
  }
  __syncthreads();
  unsigned ready = 0;
  while (ready == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.b32 %0, 1, 0, "
        "p; }"
        : "=r"(ready)
        : "r"(done)
        : "memory");
  }
  out[threadIdx.x] = tile[threadIdx.x];
}

#endif
}
