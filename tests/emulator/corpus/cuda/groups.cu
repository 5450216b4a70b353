// Cooperative groups: tiles, coalesced threads, the whole grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void tile_sums(const int* x, int* y)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int v = x[blockIdx.x * blockDim.x + block.thread_rank()];
    for (int step = tile.size() / 2; step; step /= 2) v += tile.shfl_down(v, step);
    if (tile.thread_rank() == 0) y[blockIdx.x * (blockDim.x / 8) + tile.meta_group_rank()] = v;
}

extern "C" __global__ void tile_reduce_scan(const int* x, int* sums, int* scans)
{
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[i] = cg::reduce(tile, x[i], cg::plus<int>());
    scans[i] = cg::inclusive_scan(tile, x[i], cg::plus<int>());
}

// Aggregates an atomic over the threads that take the branch.
extern "C" __global__ void coalesced_count(const int* x, int* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 3 == 0) {
        auto active = cg::coalesced_threads();
        if (active.thread_rank() == 0) atomicAdd(y, active.size());
    }
}

// Each step sums a neighbor from another block: every block must see the step before.
extern "C" __global__ void grid_steps(int* a, int* b, int n, int steps)
{
    auto grid = cg::this_grid();
    int i = grid.thread_rank();
    for (int step = 0; step < steps; ++step) {
        if (i < n) b[i] = a[i] + a[(i + 17) % n];
        grid.sync();
        if (i < n) a[i] = b[i];
        grid.sync();
    }
}
