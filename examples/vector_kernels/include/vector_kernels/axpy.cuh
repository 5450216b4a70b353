#pragma once

#include "detail/index.cuh"

namespace vector_kernels {

template <class T>
__device__ void axpy(T a, const T* x, T* y, int n) {
  int i = detail::global_index();
  if (i < n) y[i] += a * x[i];
}

}  // namespace vector_kernels
