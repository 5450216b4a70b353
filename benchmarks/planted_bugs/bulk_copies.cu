// Barriers in shared memory, and copies that complete on them. They need sm_90.
#include "planted.h"

__device__ unsigned shared_address(const void* x) { return unsigned(__cvta_generic_to_shared(x)); }
__device__ void init(unsigned long long* bar, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void arrive(unsigned long long* bar)
{
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(shared_address(bar)) : "memory");
}
__device__ void expect(unsigned long long* bar, int bytes)
{
    asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared.b64 t, [%0], %1; }" ::
        "r"(shared_address(bar)), "r"(bytes) : "memory");
}
__device__ void wait(unsigned long long* bar, int parity)
{
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }" ::  // here: wrong_parity, too_few_bytes
        "r"(shared_address(bar)), "r"(parity) : "memory");
}
__device__ void load(int* to, const int* from, int bytes, unsigned long long* bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
        "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(bar)) : "memory");
}

KERNEL arrive_without_wait(int* y)
{
    __shared__ int box[64];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) init(&bar, 64);
    __syncthreads();
    box[threadIdx.x] = y[threadIdx.x];
    arrive(&bar);
    FIX(wait(&bar, 0);)
    y[threadIdx.x] = box[63 - threadIdx.x];  // here
}

KERNEL wrong_parity(int* y)
{
    __shared__ int box[64];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) init(&bar, 64);
    __syncthreads();
    box[threadIdx.x] = y[threadIdx.x];
    arrive(&bar);
    wait(&bar, PLANT(1, 0));
    y[threadIdx.x] = box[63 - threadIdx.x];
}

KERNEL bulk_without_wait(int* y, const int* x)
{
    __shared__ alignas(16) int box[64];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        expect(&bar, 256);
        load(box, x, 256, &bar);
    }
    __syncthreads();
    FIX(wait(&bar, 0);)
    y[threadIdx.x] = box[threadIdx.x];  // here
}

KERNEL store_without_proxy_fence(int* y)
{
    __shared__ alignas(16) int box[64];
    box[threadIdx.x] = threadIdx.x;
    FIX(asm volatile("fence.proxy.async.shared::cta;" ::: "memory");)
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::  // here
            "l"(y), "r"(shared_address(box)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

KERNEL store_source_reused(int* y)
{
    __shared__ alignas(16) int box[64];
    box[threadIdx.x] = threadIdx.x;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::
            "l"(y), "r"(shared_address(box)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        FIX(asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");)
    }
    __syncthreads();
    box[threadIdx.x] = -1;  // here
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

KERNEL too_few_bytes(int* y, const int* x)
{
    __shared__ alignas(16) int box[64];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        expect(&bar, 256);
        load(box, x, PLANT(240, 256), &bar);
    }
    __syncthreads();
    wait(&bar, 0);
    y[threadIdx.x] = box[threadIdx.x];
}
