// A program of CUDA's runtime, as nvcc compiles it.
#include <cstdio>
#include <cstring>

__constant__ int factors[2];
__managed__ int total;
__device__ float table[4];

__global__ void add(int* y, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] += factors[1] * x[i];
    atomicAdd(&total, 1);
  }
  if (i == 0) printf("table[2] is %g\n", table[2]);
}

template <class T>
__global__ void fill(T* p, T value) {
  p[threadIdx.x] = value;
}

static void Show(const char* call, cudaError_t code) {
  if (code != cudaSuccess) std::printf("%s: %s\n", call, cudaGetErrorName(code));
}
#define SHOW(call) Show(#call, call)

int main() {
  cudaDeviceProp device;
  SHOW(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d.%d\n", device.name, device.major, device.minor);
  const int given[] = {0, 3};
  const float values[] = {1, 2, 3, 4};
  SHOW(cudaMemcpyToSymbol(factors, given, sizeof given));
  SHOW(cudaMemcpyToSymbol(table, values, sizeof values));
  int *x, *y, host[100];
  SHOW(cudaMalloc(&x, sizeof host));
  SHOW(cudaMallocManaged(&y, sizeof host));
  for (int i = 0; i < 100; ++i) host[i] = i;
  SHOW(cudaMemcpy(x, host, sizeof host, cudaMemcpyDefault));
  SHOW(cudaMemset(y, 0, sizeof host));
  total = 5;
  cudaStream_t stream;
  SHOW(cudaStreamCreate(&stream));
  add<<<4, 32, 0, stream>>>(y, x, 100);
  SHOW(cudaGetLastError());
  SHOW(cudaStreamSynchronize(stream));
  std::printf("%d %d %d\n", y[1], y[99], total);
  fill<<<1, 8>>>(reinterpret_cast<float*>(x), 2.5f);
  float back[8];
  SHOW(cudaMemcpy(back, x, sizeof back, cudaMemcpyDeviceToHost));
  std::printf("%g\n", back[7]);
  int blocks, threads;
  SHOW(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, add, 0, 0));
  std::printf("%d x %d\n", blocks, threads);
  cudaLaunchConfig_t config = {};
  config.gridDim = 1, config.blockDim = 512;
  SHOW(cudaOccupancyMaxActiveClusters(&blocks, add, &config));
  SHOW(cudaOccupancyMaxPotentialClusterSize(&threads, add, &config));
  std::printf("%d clusters of %d\n", blocks, threads);

  fill<<<1, 2000>>>(x, 1);
  SHOW(cudaPeekAtLastError());
  SHOW(cudaGetLastError());
  SHOW(cudaGetLastError());  // it is taken
  cudaIpcMemHandle_t shared;
  SHOW(cudaIpcGetMemHandle(&shared, x));
  fill<<<1, 8>>>(host, 1);
  SHOW(cudaDeviceSynchronize());
}
