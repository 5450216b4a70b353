#pragma once

namespace vector_kernels::detail {

__device__ inline int global_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

}  // namespace vector_kernels::detail
