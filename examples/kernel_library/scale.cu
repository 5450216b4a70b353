// y = x * factor, for three element types. The host picks the kernel by name: prefix + type.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T>
__device__ void scale(T* y, const T* x, float factor, long long n) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < n; i += stride) y[i] = static_cast<T>(static_cast<float>(x[i]) * factor);
}

#define SCALE(name, T)                                                                   \
  extern "C" __global__ void scale_##name(T* y, const T* x, float factor, long long n) { \
    scale(y, x, factor, n);                                                              \
  }
SCALE(float32, float)
SCALE(float16, __half)
SCALE(bfloat16, __nv_bfloat16)
