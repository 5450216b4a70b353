// Accesses to global memory that nothing orders.
#include "planted.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

KERNEL blocks_add(int* sum, const int* x)
{
    int block_sum = __reduce_add_sync(~0u, x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0) PLANT(*sum += block_sum, atomicAdd(sum, block_sum));  // here
}

KERNEL threads_exchange(int* x)
{
    x[threadIdx.x] = 2 * threadIdx.x;
    FIX(__syncthreads();)
    int other = x[63 - threadIdx.x];  // here
    __syncthreads();
    x[threadIdx.x] = other;
}

KERNEL halo_of_the_next_block(int* y, const int* x)
{
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    int right = PLANT(y, x)[(i + 1) % n];
    y[i] = x[i] + right;  // here
}

KERNEL last_block_sums(int* sums, int* count, int* y)
{
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = blockIdx.x + 1;
        FIX(__threadfence();)
        is_last = atomicAdd(count, 1) == gridDim.x - 1;
        FIX(__threadfence();)
    }
    __syncthreads();
    if (is_last && threadIdx.x < gridDim.x) y[threadIdx.x] = sums[threadIdx.x];  // here
}

KERNEL fence_of_the_block(int* message, int* flag, int* y)
{
    if (blockIdx.x == 0) {
        message[0] = 42;
        PLANT(__threadfence_block(), __threadfence());
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        PLANT(__threadfence_block(), __threadfence());
        y[0] = message[0];  // here
    }
}

KERNEL scope_of_the_block(int* count)
{
    PLANT(atomicAdd_block, atomicAdd)(count, 1);  // here
}

KERNEL grid_without_sync(int* y, int* x)
{
    auto grid = cg::this_grid();
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 2 * i + 1;
    PLANT(__syncthreads(), grid.sync());
    y[i] = x[n - 1 - i];  // here
}
