// Barriers and masks that are wrong, or right but look so. The tests name lines: mind the numbers.
extern "C" __global__ void stay_away(int* out, int first)
{
    // Which threads stay away is the caller's choice, and so who comes to the exit first.
    bool away = first ? threadIdx.x < 32 : threadIdx.x >= 32;
    if (away)
        for (volatile int i = 0; i < 40 * first; ++i) {}
    if (!away) __syncthreads();
    out[threadIdx.x] = 1;
}

extern "C" __global__ void loop(int* out, int more)
{
    for (int i = 0; i < 2 + (int(threadIdx.x) / 32 == more); ++i) {
        out[threadIdx.x] += i;
        __syncthreads();
    }
    out[threadIdx.x] *= 2;
}

extern "C" __global__ void leave_early(int* out, int n, int first)
{
    if (first ? int(threadIdx.x) < n : int(threadIdx.x) >= n) return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

extern "C" __global__ void stranger(int* out)
{
    out[threadIdx.x] = __shfl_sync(0x7fffffffu, threadIdx.x, 0);  // line 30
}

extern "C" __global__ void stranger_at_barrier(int* out)
{
    out[threadIdx.x] = 1;
    __syncwarp(out[threadIdx.x] == 1 ? 0xffff : 0);  // line 36
}

extern "C" __global__ void friends(int* out)
{
    unsigned mask = 0xffu << (threadIdx.x & 24);
    int x = threadIdx.x;
    for (int i = 4; i; i /= 2) x += __shfl_xor_sync(mask, x, i);
    __syncwarp(mask);
    out[threadIdx.x] = x;
}

extern "C" __global__ void hang(int* out)
{
    __shared__ volatile int go;
    if (threadIdx.x == 0) go = 0;
    __syncthreads();
    if (threadIdx.x < 32)
        while (!go) {}  // line 54
    __syncthreads();    // line 55
    out[threadIdx.x] = 1;
}

extern "C" __global__ void two_names(int* out)
{
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;");  // line 62
    else
        asm volatile("bar.sync 2, 64;");  // line 64
    out[threadIdx.x] = 1;
}
