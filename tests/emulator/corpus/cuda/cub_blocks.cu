// CUB's algorithms of a block, of a warp and of a thread.
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_run_length_decode.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/thread/thread_sort.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>

struct Less { template <class T> __device__ bool operator()(T a, T b) const { return a < b; } };
struct Minus { template <class T> __device__ T operator()(T a, T b) const { return a - b; } };
struct Differ { template <class T> __device__ bool operator()(T a, T b) const { return a != b; } };
struct Max { template <class T> __device__ T operator()(T a, T b) const { return a > b ? a : b; } };

template <cub::BlockLoadAlgorithm kLoad, cub::BlockStoreAlgorithm kStore>
__device__ void load_store(const int* x, int* y, int n)
{
    using Load = cub::BlockLoad<int, 64, 4, kLoad>;
    using Store = cub::BlockStore<int, 64, 4, kStore>;
    __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; } storage;
    int v[4], first = blockIdx.x * 256;
    Load(storage.load).Load(x + first, v, n - first, -1);
    for (int i = 0; i < 4; ++i) v[i] += threadIdx.x;
    __syncthreads();
    Store(storage.store).Store(y + first, v, n - first);
}
extern "C" __global__ void load_transpose(const int* x, int* y, int n)
{
    load_store<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>(x, y, n);
}
extern "C" __global__ void load_warp_transpose(const int* x, int* y, int n)
{
    load_store<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>(x, y, n);
}

extern "C" __global__ void block_exchange(const int* x, int* y)
{
    using Exchange = cub::BlockExchange<int, 64, 3, true>;
    __shared__ typename Exchange::TempStorage storage;
    int v[3];
    for (int i = 0; i < 3; ++i) v[i] = x[threadIdx.x * 3 + i];
    Exchange(storage).BlockedToStriped(v, v);
    for (int i = 0; i < 3; ++i) y[threadIdx.x * 3 + i] = v[i];
}

extern "C" __global__ void block_adjacent_difference(const int* x, int* y)
{
    using Difference = cub::BlockAdjacentDifference<int, 64>;
    __shared__ typename Difference::TempStorage storage;
    int v[2] = {x[2 * threadIdx.x], x[2 * threadIdx.x + 1]}, d[2];
    Difference(storage).SubtractLeft(v, d, Minus());
    for (int i = 0; i < 2; ++i) y[2 * threadIdx.x + i] = d[i];
}

extern "C" __global__ void block_discontinuity(const int* x, int* y)
{
    using Discontinuity = cub::BlockDiscontinuity<int, 96>;
    __shared__ typename Discontinuity::TempStorage storage;
    int v[2] = {x[2 * threadIdx.x], x[2 * threadIdx.x + 1]}, flags[2];
    Discontinuity(storage).FlagHeads(flags, v, Differ());
    for (int i = 0; i < 2; ++i) y[2 * threadIdx.x + i] = flags[i];
}

extern "C" __global__ void block_shuffle(const int* x, int* y)
{
    using Shuffle = cub::BlockShuffle<int, 96>;
    __shared__ typename Shuffle::TempStorage storage;
    int v[2] = {x[2 * threadIdx.x], x[2 * threadIdx.x + 1]}, up[2] = {-1, -1};
    Shuffle(storage).Up(v, up);
    for (int i = 0; i < 2; ++i) y[2 * threadIdx.x + i] = threadIdx.x + i ? up[i] : -1;
}

extern "C" __global__ void block_histogram_atomic(const unsigned char* x, unsigned* bins)
{
    using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 256, cub::BLOCK_HISTO_ATOMIC>;
    __shared__ typename Histogram::TempStorage storage;
    __shared__ unsigned counts[256];
    unsigned char v[4];
    for (int i = 0; i < 4; ++i) v[i] = x[threadIdx.x * 4 + i];
    Histogram(storage).Histogram(v, counts);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 64) bins[i] = counts[i];
}

extern "C" __global__ void block_run_length_decode(const int* values, const int* lengths, int* y, int* total)
{
    using Decode = cub::BlockRunLengthDecode<int, 32, 1, 4>;
    __shared__ typename Decode::TempStorage storage;
    int value[1] = {values[threadIdx.x]}, length[1] = {lengths[threadIdx.x]}, count = 0;
    Decode decode(storage, value, length, count);
    for (int first = 0; first < count; first += 128) {
        int v[4];
        decode.RunLengthDecode(v, first);
        for (int i = 0; i < 4; ++i)
            if (first + threadIdx.x * 4 + i < count) y[first + threadIdx.x * 4 + i] = v[i];
    }
    if (threadIdx.x == 0) *total = count;
}

extern "C" __global__ void block_merge_sort_all(int* keys)
{
    using Sort = cub::BlockMergeSort<int, 64, 3>;
    __shared__ typename Sort::TempStorage storage;
    int k[3];
    for (int i = 0; i < 3; ++i) k[i] = keys[threadIdx.x * 3 + i];
    Sort(storage).Sort(k, Less());
    for (int i = 0; i < 3; ++i) keys[threadIdx.x * 3 + i] = k[i];
}

extern "C" __global__ void block_radix_sort_striped(const int* x, int* y)
{
    using Sort = cub::BlockRadixSort<int, 64, 3>;
    __shared__ typename Sort::TempStorage storage;
    int k[3];
    for (int i = 0; i < 3; ++i) k[i] = x[threadIdx.x * 3 + i];
    Sort(storage).SortDescendingBlockedToStriped(k);
    for (int i = 0; i < 3; ++i) y[i * 64 + threadIdx.x] = k[i];
}

template <cub::BlockScanAlgorithm kAlgorithm>
__device__ void exclusive_scan(const int* x, int* y, int* total)
{
    using Scan = cub::BlockScan<int, 96, kAlgorithm>;
    __shared__ typename Scan::TempStorage storage;
    int out, sum;
    Scan(storage).ExclusiveSum(x[threadIdx.x], out, sum);
    y[threadIdx.x] = out;
    if (threadIdx.x == 0) *total = sum;
}
extern "C" __global__ void block_scan_raking(const int* x, int* y, int* total)
{
    exclusive_scan<cub::BLOCK_SCAN_RAKING_MEMOIZE>(x, y, total);
}
extern "C" __global__ void block_scan_warps(const int* x, int* y, int* total)
{
    exclusive_scan<cub::BLOCK_SCAN_WARP_SCANS>(x, y, total);
}

template <cub::BlockReduceAlgorithm kAlgorithm> __device__ void reduce(const int* x, int* y, int n)
{
    using Reduce = cub::BlockReduce<int, 128, kAlgorithm>;
    __shared__ typename Reduce::TempStorage storage;
    int v = int(threadIdx.x) < n ? x[threadIdx.x] : 0;
    int sum = Reduce(storage).Sum(v, n);
    if (threadIdx.x == 0) *y = sum;
}
extern "C" __global__ void block_reduce_warps(const int* x, int* y, int n)
{
    reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x, y, n);
}
extern "C" __global__ void block_reduce_raking(const int* x, int* y, int n)
{
    reduce<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(x, y, n);
}

extern "C" __global__ void warp_segmented_sum(const int* x, const int* heads, int* y)
{
    using Reduce = cub::WarpReduce<int>;
    __shared__ typename Reduce::TempStorage storage[2];
    int sum = Reduce(storage[threadIdx.x / 32]).HeadSegmentedSum(x[threadIdx.x], heads[threadIdx.x]);
    y[threadIdx.x] = heads[threadIdx.x] ? sum : 0;
}

extern "C" __global__ void warp_scan_of_sixteen(const int* x, int* y)
{
    using Scan = cub::WarpScan<int, 16>;
    __shared__ typename Scan::TempStorage storage[4];
    int out;
    Scan(storage[threadIdx.x / 16]).ExclusiveScan(x[threadIdx.x], out, -100, Max());
    y[threadIdx.x] = out;
}

extern "C" __global__ void warp_exchange(const int* x, int* y)
{
    using Exchange = cub::WarpExchange<int, 4, 16>;
    __shared__ typename Exchange::TempStorage storage[4];
    int v[4];
    for (int i = 0; i < 4; ++i) v[i] = x[threadIdx.x * 4 + i];
    Exchange(storage[threadIdx.x / 16]).BlockedToStriped(v, v);
    for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = v[i];
}

extern "C" __global__ void warp_load_store(const int* x, int* y)
{
    using Load = cub::WarpLoad<int, 3, cub::WARP_LOAD_TRANSPOSE>;
    using Store = cub::WarpStore<int, 3, cub::WARP_STORE_TRANSPOSE>;
    __shared__ typename Load::TempStorage load[2];
    __shared__ typename Store::TempStorage store[2];
    int v[3], warp = threadIdx.x / 32;
    Load(load[warp]).Load(x + warp * 96, v);
    for (int i = 0; i < 3; ++i) v[i] = 3 * v[i] + i;
    Store(store[warp]).Store(y + warp * 96, v);
}

extern "C" __global__ void warp_merge_sort_pairs(int* keys, int* values)
{
    using Sort = cub::WarpMergeSort<int, 2, 16, int>;
    __shared__ typename Sort::TempStorage storage[4];
    int k[2], v[2];
    for (int i = 0; i < 2; ++i) k[i] = keys[threadIdx.x * 2 + i], v[i] = threadIdx.x % 16 * 2 + i;
    Sort(storage[threadIdx.x / 16]).StableSort(k, v, Less());
    for (int i = 0; i < 2; ++i) keys[threadIdx.x * 2 + i] = k[i], values[threadIdx.x * 2 + i] = v[i];
}

extern "C" __global__ void thread_sort(int* keys)
{
    int k[5], v[5] = {};
    for (int i = 0; i < 5; ++i) k[i] = keys[threadIdx.x * 5 + i];
    cub::StableOddEvenSort(k, v, Less());
    for (int i = 0; i < 5; ++i) keys[threadIdx.x * 5 + i] = k[i];
}
