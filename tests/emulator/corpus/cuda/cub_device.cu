// CUB's algorithms of a whole grid: the code that its device-wide functions launch.
#include <cub/agent/agent_reduce.cuh>
#include <cub/agent/agent_scan.cuh>
#include <cub/agent/agent_select_if.cuh>
#include <cub/grid/grid_even_share.cuh>
#include <cuda/std/functional>

struct Fixed { static constexpr int BLOCK_THREADS = 64, ITEMS_PER_THREAD = 4; };
// Their names in CCCL 3.0 and 3.5.
#if CUB_VERSION < 300500
using ScanPolicy = cub::AgentScanPolicy<64, 4, int, cub::BLOCK_LOAD_WARP_TRANSPOSE,
    cub::LOAD_DEFAULT, cub::BLOCK_STORE_WARP_TRANSPOSE, cub::BLOCK_SCAN_WARP_SCANS, Fixed>;
using ReducePolicy = cub::AgentReducePolicy<64, 4, int, 4, cub::BLOCK_REDUCE_WARP_REDUCTIONS,
    cub::LOAD_LDG, Fixed>;
using SelectPolicy = cub::AgentSelectIfPolicy<64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE,
    cub::LOAD_DEFAULT, cub::BLOCK_SCAN_WARP_SCANS>;
using Reduce = cub::detail::reduce::AgentReduce<ReducePolicy, const int*, int*, int,
    cuda::std::plus<>, int>;
#else
using ScanPolicy = cub::detail::agent_scan_policy<64, 4, int, cub::BLOCK_LOAD_WARP_TRANSPOSE,
    cub::LOAD_DEFAULT, cub::BLOCK_STORE_WARP_TRANSPOSE, cub::BLOCK_SCAN_WARP_SCANS, Fixed>;
using ReducePolicy = cub::detail::agent_reduce_policy<64, 4, int, 4,
    cub::BLOCK_REDUCE_WARP_REDUCTIONS, cub::LOAD_LDG, Fixed>;
using SelectPolicy = cub::detail::agent_select_if_policy<64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE,
    cub::LOAD_DEFAULT, cub::BLOCK_SCAN_WARP_SCANS>;
using Reduce = cub::detail::reduce::AgentReduce<ReducePolicy, const int*, int, cuda::std::plus<>,
    int>;
#endif

// Each block waits for the sums of the blocks before it ("decoupled look-back").
extern "C" __global__ void device_scan(const int* x, int* y, void* tiles, int n)
{
    using Agent = cub::detail::scan::AgentScan<ScanPolicy, const int*, int*, cuda::std::plus<>,
        cub::NullType, int, int>;
    __shared__ typename Agent::TempStorage storage;
    cub::ScanTileState<int> state;
    state.Init(gridDim.x, tiles, 0);
    Agent(storage, x, y, cuda::std::plus<>(), cub::NullType()).ConsumeRange(n, state, 0);
}

extern "C" __global__ void device_reduce(const int* x, int* y, int n)
{
    __shared__ typename Reduce::TempStorage storage;
    cub::GridEvenShare<int> share;
    share.DispatchInit(n, gridDim.x, 256);
    int sum = Reduce(storage, x, cuda::std::plus<>()).ConsumeTiles(share);
    if (threadIdx.x == 0) atomicAdd(y, sum);
}

struct IsEven { __device__ bool operator()(int v) const { return v % 2 == 0; } };
struct OnePartition
{
    __device__ int input_offset() const { return 0; }
    __device__ bool is_first_partition() const { return true; }
    __device__ int num_previously_selected() const { return 0; }
    __device__ int num_previously_rejected() const { return 0; }
    __device__ int num_total_items(int n) const { return n; }
    template <class Out> __device__ void update_num_selected(Out out, int count) const { *out = count; }
};
extern "C" __global__ void device_select(const int* x, int* y, int* count, void* tiles, int n)
{
    using Agent = cub::detail::select::AgentSelectIf<SelectPolicy, const int*, cub::NullType*, int*, IsEven,
        cub::NullType, int, OnePartition, cub::SelectImpl::Select>;
    __shared__ typename Agent::TempStorage storage;
    cub::ScanTileState<int> state;
    state.Init(gridDim.x, tiles, 0);
    OnePartition partition;
    Agent(storage, x, nullptr, y, IsEven(), cub::NullType(), n, partition)
        .ConsumeRange(gridDim.x, state, count);
}
