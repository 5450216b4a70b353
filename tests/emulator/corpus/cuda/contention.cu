// All threads fight for one word.
extern "C" __global__ void count_up(int* p)
{
    int old;
    do {
        old = *(volatile int*)p;
    } while (atomicCAS(p, old, old + 1) != old);
}

extern "C" __global__ void lock(int* p)
{
    while (atomicCAS(p, 0, 1) != 0) {}
    __threadfence();
    *(volatile int*)(p + 1) += 1;
    __threadfence();
    atomicExch(p, 0);
}

extern "C" __global__ void lock_by_exchange(int* p)
{
    while (atomicExch(p, 1)) __nanosleep(100);
    __threadfence();
    *(volatile int*)(p + 1) += 1;
    __threadfence();
    atomicExch(p, 0);
}

extern "C" __global__ void swap_once(int* p, const int* compare, const int* value, int* old)
{
    old[threadIdx.x] = atomicCAS(p, compare[threadIdx.x], value[threadIdx.x]);
}

extern "C" __global__ void exchange_once(int* p, const int* value, int* old)
{
    old[threadIdx.x] = atomicExch(p, value[threadIdx.x]);
}
