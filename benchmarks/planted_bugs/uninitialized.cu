// Uses of memory that nothing has written.
#include "planted.h"

KERNEL shared_unwritten(int* y)
{
    __shared__ int box[64];
    if (threadIdx.x < PLANT(60, 64)) box[threadIdx.x] = threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = box[63 - threadIdx.x];  // here
}

KERNEL shared_accumulator(int* y, const int* x)
{
    __shared__ int sum;
    FIX(if (threadIdx.x == 0) sum = 0;)
    __syncthreads();
    atomicAdd(&sum, x[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) y[0] = sum;  // here
}

KERNEL halo_unwritten(int* y, const int* x)
{
    __shared__ int tile[66];
    int i = threadIdx.x;
    tile[i + 1] = x[i];
    FIX(if (i == 0) tile[0] = tile[65] = 0;)
    __syncthreads();
    y[i] = tile[i] + tile[i + 1] + tile[i + 2];  // here
}

KERNEL shuffle_from_outside(int* y)
{
    int x = y[threadIdx.x];
    if (threadIdx.x < 16)
        y[threadIdx.x] = __shfl_sync(0xffff, x, PLANT(threadIdx.x + 8, threadIdx.x ^ 8), 32);  // here
}

KERNEL local_unwritten(int* y, const int* x, int n)
{
    int box[8];
    for (int i = PLANT(1, 0); i < n; ++i) box[x[i] & 7] = i;
    y[threadIdx.x] = box[x[threadIdx.x] & 7];  // here
}

KERNEL global_unwritten(int* y, int* unwritten)
{
    FIX(unwritten[threadIdx.x] = 0;)
    y[threadIdx.x] = unwritten[threadIdx.x] + 1;  // here
}
