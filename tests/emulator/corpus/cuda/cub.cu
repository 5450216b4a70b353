// CUB's block-wide algorithms.
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>

extern "C" __global__ void block_reduce(const int* x, int* y)
{
    using Reduce = cub::BlockReduce<int, 128>;
    __shared__ typename Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(x[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

extern "C" __global__ void block_reduce_max(const float* x, float* y)
{
    using Reduce = cub::BlockReduce<float, 96, cub::BLOCK_REDUCE_RAKING>;
    __shared__ typename Reduce::TempStorage storage;
    float v = Reduce(storage).Reduce(
        x[blockIdx.x * 96 + threadIdx.x], [](float a, float b) { return a > b ? a : b; });
    if (threadIdx.x == 0) y[blockIdx.x] = v;
}

extern "C" __global__ void block_scan(int* x)
{
    using Scan = cub::BlockScan<int, 128>;
    __shared__ typename Scan::TempStorage storage;
    int v[4];
    for (int i = 0; i < 4; ++i) v[i] = x[(blockIdx.x * 128 + threadIdx.x) * 4 + i];
    Scan(storage).InclusiveSum(v, v);
    for (int i = 0; i < 4; ++i) x[(blockIdx.x * 128 + threadIdx.x) * 4 + i] = v[i];
}

extern "C" __global__ void block_radix_sort(unsigned* keys)
{
    using Sort = cub::BlockRadixSort<unsigned, 128, 4>;
    __shared__ typename Sort::TempStorage storage;
    unsigned k[4];
    for (int i = 0; i < 4; ++i) k[i] = keys[(blockIdx.x * 128 + threadIdx.x) * 4 + i];
    Sort(storage).Sort(k);
    for (int i = 0; i < 4; ++i) keys[(blockIdx.x * 128 + threadIdx.x) * 4 + i] = k[i];
}

extern "C" __global__ void block_sort_pairs(float* keys, int* values)
{
    using Load = cub::BlockLoad<float, 64, 8, cub::BLOCK_LOAD_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<float, 64, 8, int>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Sort::TempStorage sort;
    } storage;
    float k[8];
    int v[8];
    Load(storage.load).Load(keys + blockIdx.x * 512, k);
    for (int i = 0; i < 8; ++i) v[i] = threadIdx.x * 8 + i;
    __syncthreads();
    Sort(storage.sort).SortDescending(k, v);
    for (int i = 0; i < 8; ++i) {
        keys[blockIdx.x * 512 + threadIdx.x * 8 + i] = k[i];
        values[blockIdx.x * 512 + threadIdx.x * 8 + i] = v[i];
    }
}

extern "C" __global__ void block_histogram(const unsigned char* x, unsigned* bins)
{
    using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 256, cub::BLOCK_HISTO_SORT>;
    __shared__ typename Histogram::TempStorage storage;
    __shared__ unsigned local[256];
    unsigned char v[4];
    for (int i = 0; i < 4; ++i) v[i] = x[threadIdx.x * 4 + i];
    Histogram(storage).Histogram(v, local);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 64) bins[i] = local[i];
}
