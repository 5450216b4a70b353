// Cooperative groups that are divided by a condition, copy memory, or choose a thread.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void labeled_sums(const int* x, int* y)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int v = x[threadIdx.x];
    auto group = cg::labeled_partition(warp, v % 3);
    y[threadIdx.x] = cg::reduce(group, v, cg::plus<int>());
}

extern "C" __global__ void binary_ranks(const int* x, int* y)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto group = cg::binary_partition(warp, x[threadIdx.x] > 0);
    y[threadIdx.x] = group.thread_rank() + 100 * group.size();
}

extern "C" __global__ void group_copy(const int* x, int* y)
{
    __shared__ int box[256];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, box, x, sizeof box);
    cg::wait(block);
    for (int i = threadIdx.x; i < 256; i += 64) y[i] = box[255 - i];
}

extern "C" __global__ void shared_stages(const int* x, int* y)
{
    __shared__ int box[2][64];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, box[0], x, sizeof box[0]);
    cg::memcpy_async(block, box[1], x + 64, sizeof box[1]);
    cg::wait_prior<1>(block);
    int first = box[0][63 - threadIdx.x];
    cg::wait(block);
    y[threadIdx.x] = first + box[1][threadIdx.x ^ 1];
}

extern "C" __global__ void tile_scan_and_votes(const int* x, int* y)
{
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int v = x[threadIdx.x];
    int sum = cg::exclusive_scan(tile, v, cg::plus<int>());
    y[threadIdx.x] = sum + 1000 * (tile.any(v < 0) ? 1 : 0) + 10000 * __popc(tile.ballot(v & 1));
}

extern "C" __global__ void one_thread_invokes(int* y, int n)
{
    __shared__ int first;
    auto block = cg::this_thread_block();
    cg::invoke_one(block, [&] { first = atomicAdd(y, n); });
    block.sync();
    if (threadIdx.x < n) y[1 + first + threadIdx.x] = first;
}

// Two phases of a grid: each block sums a part, then block 0 sums the parts.
extern "C" __global__ void grid_sum(const int* x, int* parts, int* y)
{
    __shared__ int warp_sums[2];
    auto grid = cg::this_grid();
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int sum = cg::reduce(warp, x[grid.thread_rank()], cg::plus<int>());
    if (warp.thread_rank() == 0) warp_sums[warp.meta_group_rank()] = sum;
    __syncthreads();
    if (threadIdx.x == 0) parts[blockIdx.x] = warp_sums[0] + warp_sums[1];
    grid.sync();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (int i = 0; i < gridDim.x; ++i) *y += parts[i];
}
