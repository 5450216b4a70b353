// Accesses to shared memory that nothing orders.
#include "planted.h"
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

KERNEL no_barrier(int* y)
{
    __shared__ int box[64];
    box[threadIdx.x] = y[threadIdx.x];
    FIX(__syncthreads();)
    y[threadIdx.x] = box[63 - threadIdx.x];  // here
}

KERNEL tile_overwritten(int* y, const int* x)
{
    __shared__ int tile[64];
    int sum = 0;
    for (int k = 0; k < 4; ++k) {
        tile[threadIdx.x] = x[k * 64 + threadIdx.x];  // here
        __syncthreads();
        sum += tile[63 - threadIdx.x];
        FIX(__syncthreads();)
    }
    y[threadIdx.x] = sum;
}

KERNEL old_reduction(int* y)
{
    __shared__ int box[64];
    int t = threadIdx.x;
    box[t] = y[t];
    __syncthreads();
    for (int step = 16; t < 32 && step; step /= 2) {
        int sum = box[t] + box[t + step];
        FIX(__syncwarp();)
        box[t] = sum;  // here
        FIX(__syncwarp();)
    }
    y[t] = t ? 0 : box[0];
}

KERNEL zero_then_count(int* y)
{
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    FIX(__syncthreads();)
    atomicAdd(&count, y[threadIdx.x]);  // here
    __syncthreads();
    y[threadIdx.x] = count;
}

KERNEL two_writers(int* y)
{
    __shared__ int box[32];
    if (PLANT(true, threadIdx.x % 2 == 0)) box[threadIdx.x / 2] = threadIdx.x;  // here
    __syncthreads();
    y[threadIdx.x] = box[threadIdx.x / 2];
}

KERNEL scan_in_place(int* y)
{
    __shared__ int box[64];
    int t = threadIdx.x;
    box[t] = y[t];
    for (int step = 1; step < 64; step *= 2) {
        __syncthreads();
        int left = t >= step ? box[t - step] : 0;
        FIX(__syncthreads();)
        box[t] += left;  // here
    }
    y[t] = box[t];
}

KERNEL named_barriers_apart(int* y)
{
    __shared__ int box[64];
    box[threadIdx.x] = y[threadIdx.x];
    if (PLANT(threadIdx.x < 32, true)) asm volatile("barrier.sync 1, %0;" ::"n"(PLANT(32, 64)) : "memory");
    else asm volatile("barrier.sync 2, 32;" ::: "memory");
    y[threadIdx.x] = box[63 - threadIdx.x];  // here
}

KERNEL copy_without_wait(int* y, const int* x)
{
    __shared__ int box[64];
    __pipeline_memcpy_async(&box[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    FIX(__pipeline_wait_prior(0);)
    y[threadIdx.x] = box[threadIdx.x];  // here
}

KERNEL copy_of_the_wrong_stage(int* y, const int* x)
{
    __shared__ int box[2][64];
    for (int stage = 0; stage < 2; ++stage) {
        __pipeline_memcpy_async(&box[stage][threadIdx.x], &x[stage * 64 + threadIdx.x], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(PLANT(1, 0));
    __syncthreads();
    y[threadIdx.x] = box[1][threadIdx.x];  // here
}
