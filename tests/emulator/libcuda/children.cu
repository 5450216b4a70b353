// Kernels that launch kernels, as nvcc compiles them.
#include <cstdio>

__global__ void add(int* p, int base, double more) {
  atomicAdd(&p[blockIdx.x * blockDim.x + threadIdx.x], base + int(more));
}
__global__ void show(const int* p, const char* name) {
  printf("%s: %d %d %d\n", name, p[0], p[31], p[63]);
}
__global__ void sort(int* p, int n, int depth) {
  if (n < 2) return;
  const int pivot = p[n / 2];
  int i = 0, j = n - 1;
  while (i <= j) {
    while (p[i] < pivot) ++i;
    while (p[j] > pivot) --j;
    if (i <= j) {
      const int t = p[i];
      p[i++] = p[j];
      p[j--] = t;
    }
  }
  cudaStream_t left, right;
  cudaStreamCreateWithFlags(&left, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&right, cudaStreamNonBlocking);
  sort<<<1, 1, 0, left>>>(p, j + 1, depth + 1);
  sort<<<1, 1, 0, right>>>(p + i, n - i, depth + 1);
  cudaStreamDestroy(left);
  cudaStreamDestroy(right);
}
__global__ void parent(int* p, int n) {
  if (threadIdx.x != 0) return;
  show<<<1, 1, 0, cudaStreamTailLaunch>>>(p, "tail");
  add<<<n, 32>>>(p, 5, 2.0);
  add<<<dim3(1, 1, 1), 32, 0, cudaStreamFireAndForget>>>(p, 7, 1.0);
  if (cudaGetLastError() != cudaSuccess) printf("an error\n");
}

// p[0..1] += 1, to[0..1] = p[0..1], p[2..3] = -1, to[2] = the heap's.
__global__ void copy(int* p, int* to) {
  add<<<1, 2>>>(p, 1, 0.0);
  cudaMemcpyAsync(to, p, 8, cudaMemcpyDeviceToDevice, 0);
  cudaMemsetAsync(p + 2, 0xff, 8, 0);
  int* heap;
  if (cudaMalloc(&heap, 4) != cudaSuccess) return;
  *heap = 77;
  to[2] = *heap;
  cudaFree(heap);
}

int main() {
  int* p;
  cudaMallocManaged(&p, 64 * sizeof *p);
  for (int i = 0; i < 64; ++i) p[i] = i * 37 % 64;
  sort<<<1, 1>>>(p, 64, 0);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  parent<<<1, 32>>>(p, 2);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  for (int i = 0; i < 64; ++i) {
    if (p[i] != i + 7 + 8 * (i < 32)) std::printf("p[%d] is %d\n", i, p[i]);
  }
  copy<<<1, 1>>>(p, p + 32);
  cudaDeviceSynchronize();
  std::printf("copy: %d %d %d %d %d\n", p[32], p[33], p[2], p[3], p[34]);
}
