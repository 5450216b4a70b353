// Accesses to shared memory. First, programs whose threads race with each other.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

extern "C" __global__ void neighbour(int* out)
{
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}

extern "C" __global__ void old_reduction(int* out)
{
    // This was right while the lanes of a warp moved together.
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 32)
        for (int step = 32; step; step /= 2) s[threadIdx.x] += s[threadIdx.x + step % 64];
    out[threadIdx.x] = threadIdx.x ? 0 : s[0];
}

extern "C" __global__ void two_paths(int* out)
{
    __shared__ int s[32];
    if (threadIdx.x & 1) s[threadIdx.x] = 5;
    else out[threadIdx.x] = s[threadIdx.x + 1];
}

extern "C" __global__ void read_then_write(int* out)
{
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = s[0];
    if (threadIdx.x == 9) s[0] = 7;
}

extern "C" __global__ void zero_then_count(int* out)
{
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    atomicAdd(&count, 1);
    __syncthreads();
    out[0] = count;
}

extern "C" __global__ void count_then_read(int* out)
{
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, 1);
    if (threadIdx.x == 0) out[0] = count;
}

extern "C" __global__ void one_word(int* out)
{
    __shared__ int s;
    s = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s;
}

extern "C" __global__ void beyond_the_tile(int* out)
{
    __shared__ int s[64];
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    s[threadIdx.x] = threadIdx.x;
    tile.sync();
    out[threadIdx.x] = s[threadIdx.x ^ 8];
}

extern "C" __global__ void copy_without_wait(int* out, const int* x)
{
    __shared__ int s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void copy_without_barrier(int* out, const int* x)
{
    __shared__ int s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x ^ 32];
}

extern "C" __global__ void copy_with_barrier_alone(int* out, const int* x)
{
    __shared__ int s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 32];
}

extern "C" __global__ void copy_of_the_wrong_stage(int* out, const int* x)
{
    __shared__ int s[2][64];
    for (int stage = 0; stage < 2; ++stage) {
        __pipeline_memcpy_async(&s[stage][threadIdx.x], &x[threadIdx.x], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    out[threadIdx.x] = s[1][threadIdx.x];
}

extern "C" __global__ void copy_over_what_is_read(int* out, const int* x)
{
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 32];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

// Now programs that are right.
extern "C" __global__ void warp_in_order(int* out)
{
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    int x = s[threadIdx.x ^ 1];
    __syncwarp();
    s[threadIdx.x ^ 3] = x;
    __shfl_sync(~0u, x, 0);
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void new_reduction(int* out)
{
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 32)
        for (int step = 32; step; step /= 2) {
            int other = s[threadIdx.x + step];
            __syncwarp();
            s[threadIdx.x] += other;
            __syncwarp();
        }
    out[threadIdx.x] = threadIdx.x ? 0 : s[0];
}

extern "C" __global__ void tiles(int* out)
{
    __shared__ int s[64];
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    for (int round = 0; round < 3; ++round) {
        s[threadIdx.x] = threadIdx.x + round;
        tile.sync();
        int x = s[threadIdx.x ^ 5];
        tile.sync();
        if (tile.thread_rank() == 0)
            for (int i = 0; i < 8; ++i) s[threadIdx.x + i] = x;
        tile.sync();
    }
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void halves(int* out)
{
    // The two halves of a warp meet at different places, and then together.
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 16) {
        __syncwarp(0xffff);
        out[threadIdx.x] = s[threadIdx.x ^ 1];
    } else {
        __syncwarp(0xffff0000);
        out[threadIdx.x] = s[threadIdx.x ^ 2];
    }
    __syncwarp();
    s[31 - threadIdx.x] = 4;
}

extern "C" __global__ void same_value(int* out)
{
    __shared__ int found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    if (threadIdx.x % 3 == 1) found = 1;
    __syncthreads();
    out[threadIdx.x] = found;
}

extern "C" __global__ void counted(int* out)
{
    __shared__ int count, last;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (atomicAdd(&count, 1) == 63) last = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = count + (last >= 0);
}

extern "C" __global__ void flags(int* out)
{
    // Volatile accesses are strong: they do not race with each other.
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 33) flag = 1;
    while (flag == 0) {}
    out[threadIdx.x] = 1;
}

extern "C" __global__ void bytes(unsigned char* out)
{
    __shared__ unsigned char s[64];
    __shared__ int t[16];
    if (threadIdx.x < 16) t[threadIdx.x] = threadIdx.x;
    s[threadIdx.x] = threadIdx.x;
    s[threadIdx.x] += 1;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x] + t[threadIdx.x / 4];
}

extern "C" __global__ void stages(int* out, const int* x)
{
    __shared__ int s[2][64];
    int sum = 0;
    __pipeline_memcpy_async(&s[0][threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    for (int k = 0; k < 4; ++k) {
        if (k < 3) __pipeline_memcpy_async(&s[(k + 1) % 2][threadIdx.x], &x[64 * k + 64 + threadIdx.x], 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += s[k % 2][63 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void by_mbarrier(int* out, const int* x)
{
    __shared__ int s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> ready;
    if (threadIdx.x == 0) init(&ready, 64);
    __syncthreads();
    cuda::memcpy_async(&s[threadIdx.x], &x[threadIdx.x], cuda::aligned_size_t<4>(4), ready);
    ready.arrive_and_wait();
    out[threadIdx.x] = s[63 - threadIdx.x];
}

extern "C" __global__ void ping_pong(int* out)
{
    __shared__ int s[32];
    int lane = threadIdx.x % 32;
    for (int k = 0; k < 3; ++k) {
        if (threadIdx.x < 32) {
            s[lane] = lane + k;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
            asm volatile("bar.sync 2, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[lane + 32 * k] = s[31 - lane];
            asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
}

extern "C" __global__ void four_at_once(int4* out)
{
    // One of the four elements that are stored together races.
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    int x = s[threadIdx.x ^ 32];
    out[threadIdx.x] = make_int4(1, 2, x, 4);
}

extern "C" __global__ void read_ahead(int* out, int n)
{
    // A value that was read in a race, and that nobody uses.
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    int x = ((volatile int*)s)[threadIdx.x ^ 32];
    out[threadIdx.x] = int(threadIdx.x) < n ? x : 3;
}
