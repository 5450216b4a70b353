// wmma, asynchronous copies, barriers in shared memory, scoped atomics.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <mma.h>
namespace cg = cooperative_groups;
using namespace nvcuda;

extern "C" __global__ void wmma_half(const __half* a, const __half* b, float* c, int k)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(x, a + i, k);
        wmma::load_matrix_sync(y, b + i, k);
        wmma::mma_sync(sum, x, y, sum);
    }
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2.0f;
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_int8(const signed char* a, const signed char* b, int* c)
{
    __shared__ signed char tile[16 * 16];
    for (int i = threadIdx.x; i < 256; i += 32) tile[i] = a[i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fill_fragment(sum, 1);
    wmma::load_matrix_sync(x, tile, 16);
    wmma::load_matrix_sync(y, b, 16);
    wmma::mma_sync(sum, x, y, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
}

extern "C" __global__ void async_copy(const float* x, float* y, int n)
{
    extern __shared__ float box[];
    auto block = cg::this_thread_block();
    float sum = 0;
    for (int i = 0; i < n; i += 256) {
        cg::memcpy_async(block, box, x + i, sizeof(float) * 256);
        cg::wait(block);
        for (int k = threadIdx.x; k < 256; k += blockDim.x) sum += box[k ^ 1];
        block.sync();
    }
    y[threadIdx.x] = sum;
}

extern "C" __global__ void pipelined(const int* x, int* y, int tiles)
{
    __shared__ int box[2][64];
    auto pipe = cuda::make_pipeline();
    int sum = 0;
    for (int fetch = 0, use = 0; use < tiles; ++use) {
        for (; fetch < tiles && fetch < use + 2; ++fetch) {
            pipe.producer_acquire();
            cuda::memcpy_async(&box[fetch % 2][threadIdx.x], &x[fetch * 64 + threadIdx.x], sizeof(int), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();
        sum = sum * 3 + box[use % 2][63 - threadIdx.x];
        __syncthreads();
        pipe.consumer_release();
    }
    y[threadIdx.x] = sum;
}

extern "C" __global__ void barrier_object(const int* x, int* y)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int box[64];
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    int v = x[threadIdx.x];
    for (int i = 0; i < 3; ++i) {
        box[threadIdx.x] = v;
        auto token = barrier.arrive();
        v += 1;
        barrier.wait(cuda::std::move(token));
        v += box[(threadIdx.x + 7) % 64];
        barrier.arrive_and_wait();
    }
    y[threadIdx.x] = v;
}

// Producers and consumers pass values through a flag with acquire and release.
extern "C" __global__ void handshake(int* data, int* flag, int* out)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 1) {
        data[threadIdx.x] = threadIdx.x * 5;
        ready.fetch_add(1, cuda::memory_order_release);
    } else {
        while (ready.load(cuda::memory_order_acquire) < int(blockDim.x)) __nanosleep(20);
        out[threadIdx.x] = data[blockDim.x - 1 - threadIdx.x];
    }
}
