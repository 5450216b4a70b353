// Warp intrinsics, atomics of every kind, locks and waiting for other blocks.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void shuffles(const int* x, int* out)
{
    int v = x[threadIdx.x], lane = threadIdx.x & 31, *o = out + 8 * threadIdx.x;
    o[0] = __shfl_sync(~0u, v, lane ^ 5);
    o[1] = __shfl_up_sync(~0u, v, 3, 16);
    o[2] = __shfl_down_sync(~0u, v, 2, 8);
    o[3] = __shfl_xor_sync(~0u, v, 9);
    o[4] = __shfl_sync(~0u, v, lane * 3, 4);
    double d = v * 0.5;
    o[5] = int(2 * __shfl_xor_sync(~0u, d, 1));
    o[6] = o[7] = 0;
    if (lane & 1) o[6] = __shfl_sync(0xaaaaaaaau, v, 7);
    else o[7] = __shfl_down_sync(0x55555555u, v, 2);
}

extern "C" __global__ void votes(const int* x, unsigned* out)
{
    int v = x[threadIdx.x];
    unsigned* o = out + 8 * threadIdx.x;
    o[0] = __ballot_sync(~0u, v > 0);
    o[1] = __any_sync(~0u, v > 90);
    o[2] = __all_sync(~0u, v > -95);
    o[3] = __match_any_sync(~0u, v % 5);
    int all;
    o[4] = __match_all_sync(~0u, v / 1000, &all);
    o[5] = all;
    o[6] = __reduce_add_sync(~0u, v);
    o[7] = v > 0 ? __activemask() : 0;
}

extern "C" __global__ void atomics(int* i, unsigned* u, long long* l, float* f, double* d)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, v = (t * 37) % 101;
    atomicAdd(&i[0], v);
    atomicSub(&i[1], v);
    atomicMin(&i[2], v - 50);
    atomicMax(&i[3], v - 50);
    atomicAnd(&i[4], ~(1 << (t % 9)));
    atomicOr(&i[5], 1 << (t % 13));
    atomicXor(&i[6], v);
    atomicInc(&u[0], 17);
    atomicDec(&u[1], 23);
    atomicCAS(&u[2], 0u, 7u);
    atomicAdd((unsigned long long*)&l[0], (unsigned long long)v << 33);
    atomicMax(&l[1], (long long)v << 40);
    atomicAdd(&f[t % 4], 0.25f * v);
    atomicAdd(&d[t % 3], 0.125 * v);
}

extern "C" __global__ void atomic_tickets(int* next, int* order)
{
    order[atomicAdd(next, 1)] = blockIdx.x * blockDim.x + threadIdx.x;
}

extern "C" __global__ void half_atomics(__half2* h, __nv_bfloat162* b, __half* s)
{
    atomicAdd(h, __floats2half2_rn(1.0f, 0.5f));
    atomicAdd(b, __floats2bfloat162_rn(2.0f, 1.0f));
    atomicAdd(s + (threadIdx.x & 1), __float2half(1.0f));
}

// Each thread takes the lock in turn.
extern "C" __global__ void spin_lock(int* lock, int* value)
{
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            int old = *(volatile int*)value;
            *(volatile int*)value = old * 3 % 1000003 + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// Block b waits for block b - 1: the look-back of a chained scan.
extern "C" __global__ void chained_scan(const int* x, int* out, volatile int* flags, volatile int* sums)
{
    __shared__ int before;
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, v);
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        if (blockIdx.x > 0) {
            while (flags[blockIdx.x - 1] == 0) {}
            __threadfence();
            sum = sums[blockIdx.x - 1];
        }
        before = sum;
        sums[blockIdx.x] = sum + total;
        __threadfence();
        flags[blockIdx.x] = 1;
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = before + v;
}

extern "C" __global__ void block_votes(const int* x, int* out)
{
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    int count = __syncthreads_count(v > 0), all = __syncthreads_and(v > -100), any = __syncthreads_or(v > 97);
    if (threadIdx.x == 0) {
        out[3 * blockIdx.x] = count;
        out[3 * blockIdx.x + 1] = all;
        out[3 * blockIdx.x + 2] = any;
    }
}

// Two halves of a block hand values over through a barrier with a count.
extern "C" __global__ void named_barriers(const int* x, int* out)
{
    __shared__ int box[64];
    int t = threadIdx.x;
    if (t < 64) {
        box[t] = x[t] * 2;
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        out[t - 64] = box[127 - t] + 1;
    }
}
