// Accesses to global memory. First, programs whose threads race with each other.
#include <cooperative_groups.h>
#include <cuda/atomic>

#include <cub/block/block_reduce.cuh>

namespace cg = cooperative_groups;

extern "C" __global__ void neighbour_block(int* out, int* x)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    int i = (blockIdx.x ^ 1) * blockDim.x + threadIdx.x;
    out[i] = x[i];
}

extern "C" __global__ void neighbour_thread(int* out, int* x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i + 1;
    out[i] = x[i ^ 32];
}

extern "C" __global__ void one_result(int* out, int* x)
{
    if (threadIdx.x == 0) x[0] = blockIdx.x + 1;
    out[0] = 0;
}

extern "C" __global__ void read_then_overwritten(int* out, int* x)
{
    if (blockIdx.x == 0) out[threadIdx.x] = x[threadIdx.x];
    else x[threadIdx.x] = 7;
}

extern "C" __global__ void count_then_read(int* out, int* x)
{
    atomicAdd(x, 1);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = *x;
}

enum Fence { NONE, OF_BLOCK, OF_THREAD_0, OF_ALL };

template <Fence fence>
__device__ void last_block(int* out, int* x)
{
    __shared__ bool last;
    x[2 + blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x + 1;
    if (fence == OF_ALL) __threadfence();
    if (fence == OF_BLOCK) __threadfence_block();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fence == OF_THREAD_0) __threadfence();
        last = atomicInc((unsigned*)x, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        int sum = 0;
        for (int b = 0; b < gridDim.x; ++b) sum += x[2 + b * blockDim.x + threadIdx.x];
        out[threadIdx.x] = sum;
    }
}

extern "C" __global__ void last_block_without_fence(int* out, int* x) { last_block<NONE>(out, x); }
extern "C" __global__ void last_block_of_one_thread(int* out, int* x)
{
    // The fence publishes only what thread 0 wrote: the others have not met it.
    __shared__ bool last;
    x[2 + blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x + 1;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc((unsigned*)x, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        int sum = 0;
        for (int b = 0; b < gridDim.x; ++b) sum += x[2 + b * blockDim.x + threadIdx.x];
        out[threadIdx.x] = sum;
    }
}
extern "C" __global__ void last_block_fence_of_block(int* out, int* x) { last_block<OF_BLOCK>(out, x); }

extern "C" __global__ void plain_flag(int* out, int* x)
{
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        x[1] = 5;
        __threadfence();
        x[0] = 1;
    } else if (blockIdx.x == 1) {
        while (((volatile int*)x)[0] == 0) {}
        __threadfence();
        out[0] = x[1];
    }
}

template <cuda::thread_scope scope>
__device__ void flag(int* out, int* x, cuda::memory_order store, cuda::memory_order load)
{
    cuda::atomic_ref<int, scope> ready(x[0]);
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        x[1] = 5;
        ready.store(1, store);
    } else if (blockIdx.x == 1) {
        while (ready.load(load) == 0) {}
        out[0] = x[1];
    }
}

extern "C" __global__ void relaxed_flag(int* out, int* x)
{
    flag<cuda::thread_scope_device>(out, x, cuda::std::memory_order_relaxed, cuda::std::memory_order_acquire);
}
extern "C" __global__ void relaxed_wait(int* out, int* x)
{
    flag<cuda::thread_scope_device>(out, x, cuda::std::memory_order_release, cuda::std::memory_order_relaxed);
}
extern "C" __global__ void flag_of_block(int* out, int* x)
{
    flag<cuda::thread_scope_block>(out, x, cuda::std::memory_order_release, cuda::std::memory_order_acquire);
}
extern "C" __global__ void count_in_block(int* out, int* x)
{
    cuda::atomic_ref<int, cuda::thread_scope_block>(x[0]).fetch_add(1, cuda::std::memory_order_relaxed);
}

// Now programs that are right.
extern "C" __global__ void flag_of_device(int* out, int* x)
{
    flag<cuda::thread_scope_device>(out, x, cuda::std::memory_order_release, cuda::std::memory_order_acquire);
}
extern "C" __global__ void flag_of_system(int* out, int* x)
{
    flag<cuda::thread_scope_system>(out, x, cuda::std::memory_order_seq_cst, cuda::std::memory_order_seq_cst);
}

extern "C" __global__ void last_block_reduces(int* out, int* x) { last_block<OF_THREAD_0>(out, x); }
extern "C" __global__ void last_block_all_fence(int* out, int* x) { last_block<OF_ALL>(out, x); }

extern "C" __global__ void last_block_of_the_guide(int* out, int* x)
{
    // The example of the CUDA C++ Programming Guide, "Memory Fence Functions".
    __shared__ bool last;
    volatile int* partial = x + 2;
    int sum = threadIdx.x + 1;
    sum = cub::BlockReduce<int, 64>().Sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc((unsigned*)x, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int total = 0;
        for (int b = 0; b < gridDim.x; ++b) total += partial[b];
        out[0] = total;
        x[0] = 0;
    }
}

extern "C" __global__ void grid_sync(int* out, int* x)
{
    auto grid = cg::this_grid();
    int i = grid.thread_rank(), n = grid.size();
    for (int round = 0; round < 4; ++round) {
        x[i] = i + round;
        grid.sync();
        out[i] = x[(i + 65) % n];
        grid.sync();
    }
}

extern "C" __global__ void grid_sync_once_too_few(int* out, int* x)
{
    auto grid = cg::this_grid();
    int i = grid.thread_rank(), n = grid.size();
    for (int round = 0; round < 4; ++round) {
        x[i] = i + round;
        grid.sync();
        out[i] = x[(i + 65) % n];
    }
}

extern "C" __global__ void histogram(int* out, int* x)
{
    atomicAdd(&x[threadIdx.x % 7], 1);
    atomicMax(&x[8], threadIdx.x);
    if (x[9] < (int)threadIdx.x) atomicMax(&x[9], threadIdx.x);
}

extern "C" __global__ void add_by_swaps(int* out, unsigned long long* x)
{
    // The example of the guide for an atomicAdd of double.
    unsigned long long old = *x, assumed;
    do {
        assumed = old;
        old = atomicCAS(x, assumed, __double_as_longlong(1.0 + __longlong_as_double(assumed)));
    } while (assumed != old);
}

extern "C" __global__ void lock(int* out, int* x)
{
    if (threadIdx.x) return;
    while (atomicCAS(&x[0], 0, 1)) {}
    __threadfence();
    x[1] += 1;
    __threadfence();
    atomicExch(&x[0], 0);
}

extern "C" __global__ void look_back(int* out, int* x)
{
    // Each block passes its inclusive sum to the next one: a value with a flag in one word, and one
    // beside its flag.
    __shared__ int before;
    volatile int* flags = x;
    int* sums = x + 64;
    if (threadIdx.x == 0) {
        before = 0;
        if (blockIdx.x) {
            while (flags[blockIdx.x - 1] == 0) {}
            __threadfence();
            before = sums[blockIdx.x - 1];
        }
        sums[blockIdx.x] = before + 1;
        __threadfence();
        flags[blockIdx.x] = 1;
    }
    __syncthreads();
    out[blockIdx.x] = before;
}

extern "C" __global__ void wait_of_one_thread(int* out, int* x)
{
    // As a stream-K product waits for the blocks before it.
    if (blockIdx.x) {
        if (threadIdx.x == 0) {
            cuda::atomic_ref<int, cuda::thread_scope_device> turn(x[0]);
            while (turn.load(cuda::std::memory_order_acquire) != blockIdx.x) {}
        }
        __syncthreads();
    }
    x[1 + threadIdx.x] += threadIdx.x + blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::atomic_ref<int, cuda::thread_scope_device> turn(x[0]);
        turn.store(blockIdx.x + 1, cuda::std::memory_order_release);
    }
}

extern "C" __global__ void same_value(int* out, int* x)
{
    if (threadIdx.x % 2) x[0] = 1;
}

extern "C" __global__ void pairs_of_bytes(int* out, unsigned char* x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i;
    x[i] += 1;
}

extern "C" __global__ void in_warps(int* out, int* x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i;
    __syncwarp();
    out[i] = x[i ^ 3];
    __syncwarp();
    x[i ^ 5] = 0;
}

extern "C" __global__ void elected(int* out, int* x)
{
    // Lane 0 releases what its warp wrote.
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(x[0]);
    if (warp == 0) {
        x[1 + lane] = lane;
        __syncwarp();
        if (lane == 0) ready.store(1, cuda::std::memory_order_release);
    } else if (warp == 3) {
        if (lane == 0)
            while (!ready.load(cuda::std::memory_order_acquire)) {}
        __syncwarp();
        out[lane] = x[1 + (lane ^ 7)];
    }
}
