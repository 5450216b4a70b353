// Accesses outside of arrays, and accesses that are not aligned.
#include "planted.h"

KERNEL past_the_end(int* x, int n)
{
    int i = threadIdx.x;
    if (i PLANT(<=, <) n) x[i] += 1;  // here
}

KERNEL before_the_start(int* y, const int* x, int n)
{
    int i = threadIdx.x;
    int left = x[PLANT(i - 1, max(i - 1, 0))];  // here
    if (i < n) y[i] = x[i] - left;
}

KERNEL grid_too_large(int* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    FIX(if (i >= n) return;)
    x[i] = i;  // here
}

KERNEL grid_too_small(int* x, int n)
{
    int step = PLANT(n, int(gridDim.x * blockDim.x));
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) x[i] = i;  // here
}

KERNEL wide_tail(int4* y, const int* x, int n)
{
    int i = threadIdx.x;
    if (4 * i PLANT(< n, + 3 < n)) y[i] = *(const int4*)(x + 4 * i);  // here
}

KERNEL histogram_bin(int* bins, const int* x, int n)
{
    atomicAdd(&bins[PLANT(x[threadIdx.x], x[threadIdx.x] % n)], 1);  // here
}

KERNEL null_pointer(int* x, int n)
{
    int* found = nullptr;
    for (int i = 0; i < n; ++i)
        if (x[i] == -1) found = x + i;
    if (PLANT(n, found)) *found = 0;  // here
}

KERNEL view_past_the_end(int* y, const int* view, int n)
{
    int i = threadIdx.x;
    y[i] = view[i] + view[PLANT(i + 1, min(i + 1, n - 1))];  // here
}

__device__ int left_variable[32], right_variable[32];
KERNEL variable_past_the_end(int* y, int last)
{
    for (int i = threadIdx.x; i PLANT(<=, <) last; i += 32) left_variable[i] = i;  // here
    y[threadIdx.x] = left_variable[threadIdx.x] + right_variable[threadIdx.x];
}

KERNEL shared_past_the_end(int* y, int offset)
{
    __shared__ int box[64];
    box[threadIdx.x] = threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = box[PLANT(threadIdx.x + offset, (threadIdx.x + offset) % 64)];  // here
}

KERNEL dynamic_shared_too_small(int* y)
{
    extern __shared__ int dynamic[];
    dynamic[PLANT(2 * threadIdx.x, threadIdx.x)] = threadIdx.x;  // here
    __syncthreads();
    y[threadIdx.x] = dynamic[threadIdx.x];
}

KERNEL shared_neighbor(int* y, int last)
{
    __shared__ int sums[32], flags[32];
    sums[threadIdx.x] = y[threadIdx.x];
    flags[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 1; i PLANT(<=, <) last; ++i) sums[i] = sums[i - 1];  // here
    __syncthreads();
    y[threadIdx.x] = sums[threadIdx.x] + flags[threadIdx.x];
}

KERNEL member_overrun(int* y, int last)
{
    __shared__ struct { int ring[32]; int count; } state;
    if (threadIdx.x == 0) {
        state.count = 5;
        for (int i = 0; i PLANT(<=, <) last; ++i) state.ring[i] = i;  // here
    }
    __syncthreads();
    y[threadIdx.x] = state.ring[threadIdx.x] + state.count;
}

KERNEL local_past_the_end(int* y, const int* x, int last)
{
    int box[8];
    for (int i = 0; i < 8; ++i) box[i] = x[i];
    y[threadIdx.x] = box[PLANT(last + 64, last)];  // here
}

KERNEL local_neighbor(int* y, const int* x, int last)
{
    int first[8], second[8];
    for (int i = 0; i < 8; ++i) first[x[i] & 7] = i, second[x[i] & 7] = 2 * i;
    for (int i = 0; i PLANT(<=, <) last; ++i) first[i] += x[i];  // here
    y[threadIdx.x] = first[x[threadIdx.x] & 7] + second[x[threadIdx.x] & 7];
}

KERNEL misaligned_double(int* x)
{
    *(double*)(x + PLANT(1, 2) + 2 * threadIdx.x) = 1;  // here
}

KERNEL misaligned_shared(int* y, int count)
{
    extern __shared__ char carved[];
    int* sums = (int*)(carved + PLANT(count, (count + 3) / 4 * 4));
    sums[threadIdx.x] = y[threadIdx.x];  // here
    y[threadIdx.x] = 2 * sums[threadIdx.x];
}
