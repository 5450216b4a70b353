// Kernels that tests/launch/test_both_drivers.py runs on the emulator and on a GPU.
#include <cooperative_groups.h>

struct Pair {
  int count;
  double scale;
  unsigned char tag[3];
};

struct View {
  float* data;
  int n;
};

__device__ int counter = 5;
__constant__ float weights[4] = {1.0f, 2.0f, 4.0f, 8.0f};

template <class T>
__global__ void scale(T* y, const T* x, T a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}

__global__ void scalars(double* out, signed char a, unsigned char b, short c, unsigned short d,
                        int e, unsigned f, long long g, unsigned long long h, float i, double j,
                        bool k) {
  const double values[] = {double(a), double(b), double(c), double(d), double(e), double(f),
                           double(g), double(h), double(i), j, double(k)};
  for (int n = 0; n < 11; ++n) out[n] = values[n];
}

__global__ void take_pair(double* out, Pair pair) {
  out[0] = pair.count * pair.scale;
  out[1] = pair.tag[0] + pair.tag[1] + pair.tag[2];
}

__global__ void take_view(View view, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < view.n) view.data[i] = value;
}

__global__ void is_null(int* out, const float* pointer) { *out = pointer == nullptr; }

__global__ void block_sum(float* out, const float* x, int n) {
  extern __shared__ float partial[];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  partial[t] = i < n ? x[i] : 0.0f;
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    __syncthreads();
    if (t < step) partial[t] += partial[t + step];
  }
  if (t == 0) out[blockIdx.x] = partial[0];
}

__global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void histogram(int* bins, const unsigned char* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[x[i]], 1);
}

__global__ void count_up(int times) { atomicAdd(&counter, times); }

__global__ void weigh(float* out) { out[threadIdx.x] = weights[threadIdx.x % 4]; }

__global__ void where(int* out) {
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = 1000 * block + thread;
}

// Every block adds to the first cell, and reads the sum of all after a grid-wide barrier.
__global__ void grid_sum(int* out) {
  if (threadIdx.x == 0) atomicAdd(&out[0], blockIdx.x + 1);
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) out[1 + blockIdx.x] = out[0];
}

__global__ void warp_sum(int* out, const int* x) {
  int sum = x[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  out[threadIdx.x] = sum;
}

__global__ void __launch_bounds__(128) bounded(int* out) { out[threadIdx.x] = threadIdx.x; }

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void recurse(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x); }
