// Barriers and masks that do not match the threads, and waits that never end.
#include "planted.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

KERNEL half_a_barrier(int* y)
{
    if (PLANT(threadIdx.x < 32, true)) __syncthreads();
    y[threadIdx.x] = 1;
}  // here

KERNEL barrier_in_both_branches(int* y)
{
    if (threadIdx.x & 1) {
        y[threadIdx.x] = 1;
        PLANT(__syncthreads(), );  // here
    } else {
        y[threadIdx.x] = 2;
        PLANT(__syncthreads(), );
    }
    FIX(__syncthreads();)
    y[threadIdx.x] += 1;
}

KERNEL barrier_in_a_loop(int* y)
{
    int rounds = 2 + PLANT(threadIdx.x / 32, 0);
    for (int i = 0; i < rounds; ++i) {
        y[threadIdx.x] += i;
        __syncthreads();
    }
    y[threadIdx.x] *= 2;
}  // here

KERNEL barrier_count_too_large(int* y)
{
    asm volatile("barrier.sync 1, %0;" ::"n"(PLANT(96, 64)) : "memory");  // here
    y[threadIdx.x] = 1;
}

KERNEL shuffle_mask_without_caller(int* y)
{
    y[threadIdx.x] = __shfl_xor_sync(PLANT(0xffff, ~0u), y[threadIdx.x], 1);  // here
}

KERNEL ballot_in_a_branch(int* y)
{
    if (threadIdx.x < 16)
        y[threadIdx.x] = __ballot_sync(PLANT(~0u, 0xffff), y[threadIdx.x] > 3);
    __syncthreads();  // here
}

KERNEL grid_sync_of_some(int* y)
{
    if (PLANT(blockIdx.x, 0) != 1) cg::this_grid().sync();
    y[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

KERNEL lock_never_released(int* lock, int* y)
{
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}  // here
        __threadfence();
        y[0] += 1;
        __threadfence();
        PLANT(if (threadIdx.x != 0), ) atomicExch(lock, 0);
    }
}
