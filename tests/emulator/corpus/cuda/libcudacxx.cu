// libcu++: barriers, pipelines, atomics and semaphores of CUDA's standard library.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/mdspan>

namespace cg = cooperative_groups;

extern "C" __global__ void barrier_copies(const int* x, int* y)
{
    __shared__ int box[2][64];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> ready[2];
    auto block = cg::this_thread_block();
    if (threadIdx.x < 2) init(&ready[threadIdx.x], 64);
    block.sync();
    for (int half = 0; half < 2; ++half)
        cuda::memcpy_async(block, box[half], x + half * 64, sizeof box[half], ready[half]);
    for (int half = 0; half < 2; ++half) {
        ready[half].arrive_and_wait();
        y[half * 64 + threadIdx.x] = box[half][63 - threadIdx.x];
    }
}

extern "C" __global__ void block_pipeline(const int* x, int* y, int tiles)
{
    constexpr int kStages = 2;
    __shared__ int box[kStages][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0, fetched = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        for (; fetched < tiles && fetched < tile + kStages; ++fetched) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, box[fetched % kStages], x + fetched * 64,
                cuda::aligned_size_t<16>(256), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += box[tile % kStages][63 - threadIdx.x];
        pipe.consumer_release();
    }
    y[threadIdx.x] = sum;
}

extern "C" __global__ void specialized_pipeline(const int* x, int* y, int tiles)
{
    constexpr int kStages = 2;
    __shared__ int box[kStages][32];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
    auto block = cg::this_thread_block();
    bool produces = threadIdx.x < 32;
    auto pipe = cuda::make_pipeline(block, &state,
        produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    int lane = threadIdx.x % 32, sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        if (produces) {
            pipe.producer_acquire();
            box[tile % kStages][lane] = x[tile * 32 + lane];
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            sum += box[tile % kStages][31 - lane];
            pipe.consumer_release();
        }
    }
    if (!produces) y[lane] = sum;
}

extern "C" __global__ void atomic_refs(int* counts, const int* x, int* largest)
{
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    cuda::atomic_ref<int, cuda::thread_scope_device> count(counts[v & 7]);
    count.fetch_add(1, cuda::std::memory_order_relaxed);
    cuda::atomic_ref<int, cuda::thread_scope_device>(*largest).fetch_max(v);
}

// A message from the first block to the others: written, published, acquired, read.
extern "C" __global__ void release_acquire(int* message, int* flag, int* y)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        message[threadIdx.x] = 3 * threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) ready.store(1, cuda::std::memory_order_release);
    } else {
        if (threadIdx.x == 0)
            while (!ready.load(cuda::std::memory_order_acquire)) {}
        __syncthreads();
    }
    y[blockIdx.x * 64 + threadIdx.x] = message[63 - threadIdx.x] + blockIdx.x;
}

extern "C" __global__ void semaphore(int* y, int rounds)
{
    __shared__ cuda::counting_semaphore<cuda::thread_scope_block, 4> full, empty;
    __shared__ int ring[4];
    if (threadIdx.x == 0) {
        new (&full) cuda::counting_semaphore<cuda::thread_scope_block, 4>(0);
        new (&empty) cuda::counting_semaphore<cuda::thread_scope_block, 4>(4);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 0; i < rounds; ++i) {
            empty.acquire();
            ring[i % 4] = i * i;
            full.release();
        }
    else if (threadIdx.x == 32)
        for (int i = 0; i < rounds; ++i) {
            full.acquire();
            y[i] = ring[i % 4];
            empty.release();
        }
}

extern "C" __global__ void latch(int* y)
{
    __shared__ alignas(8) char memory[sizeof(cuda::latch<cuda::thread_scope_block>)];
    auto& done = *reinterpret_cast<cuda::latch<cuda::thread_scope_block>*>(memory);
    __shared__ int box[64];
    if (threadIdx.x == 0) new (memory) cuda::latch<cuda::thread_scope_block>(64);
    __syncthreads();
    box[threadIdx.x] = threadIdx.x * 5;
    done.arrive_and_wait();
    y[threadIdx.x] = box[threadIdx.x ^ 33];
}

extern "C" __global__ void mdspan_transpose(const int* x, int* y, int rows, int columns)
{
    using Matrix = cuda::std::dextents<int, 2>;
    cuda::std::mdspan<const int, Matrix> from(x, rows, columns);
    cuda::std::mdspan<int, Matrix> to(y, columns, rows);
    int row = threadIdx.y, column = threadIdx.x;
    if (row < rows && column < columns) to(column, row) = from(row, column);
}
