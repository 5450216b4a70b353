// Thrust's sequential algorithms, run by each thread for itself. The public headers of Thrust need
// the host compiler's library, which NVRTC does not have: these are the functions behind them.
#include <thrust/system/detail/sequential/binary_search.h>
#include <thrust/system/detail/sequential/copy_if.h>
#include <thrust/system/detail/sequential/execution_policy.h>
#include <thrust/system/detail/sequential/insertion_sort.h>
#include <thrust/system/detail/sequential/reduce_by_key.h>
#include <thrust/system/detail/sequential/scan.h>
#include <thrust/system/detail/sequential/unique.h>

namespace seq = thrust::system::detail::sequential;

struct Less { __device__ bool operator()(int a, int b) const { return a < b; } };
struct Equal { __device__ bool operator()(int a, int b) const { return a == b; } };
struct Plus { __device__ int operator()(int a, int b) const { return a + b; } };
struct IsOdd { __device__ bool operator()(int v) const { return v & 1; } };

extern "C" __global__ void thrust_sort(int* keys, int* values)
{
    __shared__ int k[8][32], v[8][32];
    int row = threadIdx.x;
    for (int i = 0; i < 32; ++i) k[row][i] = keys[row * 32 + i], v[row][i] = i;
    seq::insertion_sort_by_key(k[row], k[row] + 32, v[row], Less());
    for (int i = 0; i < 32; ++i) keys[row * 32 + i] = k[row][i], values[row * 32 + i] = v[row][i];
}

extern "C" __global__ void thrust_reduce_by_key(const int* keys, const int* x, int* out_keys, int* sums, int* counts)
{
    seq::tag policy;
    int at = threadIdx.x * 16;
    auto ends = seq::reduce_by_key(
        policy, keys + at, keys + at + 16, x + at, out_keys + at, sums + at, Equal(), Plus());
    counts[threadIdx.x] = ends.first - (out_keys + at);
}

extern "C" __global__ void thrust_copy_if(const int* x, int* y, int* counts)
{
    seq::tag policy;
    int at = threadIdx.x * 16;
    counts[threadIdx.x] = seq::copy_if(policy, x + at, x + at + 16, x + at, y + at, IsOdd()) - (y + at);
}

extern "C" __global__ void thrust_unique(int* x, int* counts)
{
    seq::tag policy;
    int* row = x + threadIdx.x * 16;
    counts[threadIdx.x] = seq::unique(policy, row, row + 16, Equal()) - row;
}

extern "C" __global__ void thrust_scan(const int* sorted, const int* x, int* y, int n)
{
    seq::tag policy;
    __shared__ int box[64][4];
    int* own = box[threadIdx.x];
    own[0] = seq::lower_bound(policy, sorted, sorted + n, x[threadIdx.x], Less()) - sorted;
    for (int i = 1; i < 4; ++i) own[i] = i;
    seq::inclusive_scan(policy, own, own + 4, own, Plus());
    for (int i = 0; i < 4; ++i) y[4 * threadIdx.x + i] = own[i];
}
