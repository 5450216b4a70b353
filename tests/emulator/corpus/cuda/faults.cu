// Kernels that are wrong, each in one way. The tests name lines of this file: mind the numbers.
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);

extern "C" __global__ void past_the_end(float* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 1.0f;  // line 7
}

extern "C" __global__ void misaligned(char* x) { *(int*)(x + 4 * threadIdx.x + (threadIdx.x == 9)) = 1; }

extern "C" __global__ void shared_past_the_end(int* out, int at)
{
    __shared__ int a[32];
    a[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = a[threadIdx.x + at];  // line 17
}

extern "C" __global__ void uninitialised(int* out)
{
    __shared__ int a[64];
    if (threadIdx.x != 5) a[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = a[63 - threadIdx.x];  // line 25
}

extern "C" __global__ void no_barrier(int* out)
{
    __shared__ int a[128];
    a[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = a[127 - threadIdx.x];  // line 32
}

extern "C" __global__ void half_a_barrier(int* out)
{
    __shared__ int a[64];
    a[threadIdx.x] = out[threadIdx.x];
    if (threadIdx.x < 40) __syncthreads();  // line 39
    out[threadIdx.x] = a[threadIdx.x ^ 1];
}

extern "C" __global__ void two_barriers(int* out)
{
    if (threadIdx.x & 1) {
        __syncthreads();
        out[threadIdx.x] = 1;
    } else {
        out[threadIdx.x] = 2;
        __syncthreads();
    }
    out[threadIdx.x] += 1;
}

extern "C" __global__ void barrier_in_a_loop(int* out)
{
    for (int i = 0; i < int(threadIdx.x & 3) + 1; ++i) {
        out[threadIdx.x] += i;
        __syncthreads();
    }
    out[threadIdx.x] *= 2;
}

// Right: threads that return early are not waited for.
extern "C" __global__ void early_return(int* out, int n)
{
    __shared__ int a[64];
    if (int(threadIdx.x) >= n) return;
    a[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = a[n - 1 - threadIdx.x];
}

extern "C" __global__ void missing_lane(int* out)
{
    if (threadIdx.x < 31) out[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 31);
    else
        for (;;) __nanosleep(1);
}

extern "C" __global__ void assertion(int* x)
{
    if (threadIdx.x == 3) __assertfail("x[3] > 0", "kernel.cu", 12, "assertion", 1);
    x[threadIdx.x] = 1;
}

extern "C" __global__ void stop(int* x)
{
    if (threadIdx.x == 7) __trap();
    x[threadIdx.x] = 1;
}

__device__ __noinline__ int endless(int n) { return n == -1 ? 0 : endless(n + 1) * 2 + 1; }
extern "C" __global__ void endless_recursion(int* x) { x[0] = endless(x[0]); }

extern "C" __global__ void wrong_pointer(int* x) { *(int*)(size_t(x) & 15) = 1; }

extern "C" __global__ void local_past_the_end(int* out, int n)
{
    int a[8];
    for (int i = 0; i < 8; ++i) a[i] = out[i];
    out[threadIdx.x] = a[n] + a[n + threadIdx.x];
}

extern "C" __global__ void forever(volatile int* x) { while (x[0] == 0) {} }

extern "C" __global__ void messages(int n, const char* text)
{
    if (threadIdx.x < 2)
        printf("%d of %u: %5.2f|%-4s|%c|%lld|%#x|%%|%s\n", threadIdx.x, n, 1.5 * n, "ab", 'z', 1ll << 40, 255, text);
}

extern "C" __global__ void heap(int* out)
{
    int* p = (int*)malloc(16);
    p[threadIdx.x & 3] = threadIdx.x;
    out[threadIdx.x] = p[threadIdx.x & 3];
    free(p);
}
