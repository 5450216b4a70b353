// Features of the language: calls, pointers, local arrays, constants, switches, printf.
struct Pair {
    float weight[3];
    int index;
};

__constant__ float table[8] = {1, 2, 4, 8, 16, 32, 64, 128};
__device__ const float* rows[2] = {table, table + 4};
__device__ int counter = 5;

__device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ int twice(int n) { return 2 * n; }
__device__ __noinline__ int square(int n) { return n * n; }
using Function = int (*)(int);
__device__ Function functions[3] = {fibonacci, twice, square};

extern "C" __global__ void recursion(int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fibonacci(i % 13);
}

extern "C" __global__ void function_pointers(int* out)
{
    int i = threadIdx.x;
    out[i] = functions[i % 3](i % 11);
}

__device__ __noinline__ Pair blend(Pair a, const Pair& b, float t)
{
    Pair c;
    for (int i = 0; i < 3; ++i) c.weight[i] = a.weight[i] * t + b.weight[i];
    c.index = a.index + b.index;
    return c;
}

extern "C" __global__ void structs(Pair p, Pair* out, float t)
{
    Pair q = out[threadIdx.x];
    out[threadIdx.x] = blend(p, q, t);
}

extern "C" __global__ void constants(float* out, int n)
{
    int i = threadIdx.x;
    out[i] = table[i & 7] + *rows[i & 1] + rows[1][i & 3];
    if (i < n) atomicAdd(&counter, 1);
    __syncthreads();
    if (i == 0) out[0] = counter;
}

extern "C" __global__ void local_arrays(int* out, int n)
{
    int scratch[16];
    for (int i = 0; i < 16; ++i) scratch[i] = (threadIdx.x * 7 + i * 13) % 16;
    int at = threadIdx.x % 16;
    for (int i = 0; i < n; ++i) at = scratch[at];
    out[threadIdx.x] = at + scratch[(threadIdx.x + n) % 16];
}

extern "C" __global__ void switches(const int* x, int* out)
{
    int v = x[threadIdx.x];
    switch (v) {
    case 0: v = 17; break;
    case 1: v = v * 3; // falls through
    case 2: v += 5; break;
    case 3: v = -v; break;
    case 4: for (int i = 0; i < v; ++i) v += i & 1; break;
    case 5: v ^= 0x55; break;
    case 6: return;
    default: v = 99;
    }
    out[threadIdx.x] = v;
}

extern "C" __global__ void parameter_array(Pair p, int* out)
{
    const int* words = reinterpret_cast<const int*>(&p);
    out[threadIdx.x] = words[threadIdx.x & 3];
}

extern "C" __global__ void shared_generic(int* out, int which)
{
    __shared__ int a[64];
    extern __shared__ int b[];
    int own[2] = {int(threadIdx.x), 1000};
    a[threadIdx.x] = threadIdx.x * 2;
    b[threadIdx.x] = threadIdx.x * 3;
    __syncthreads();
    int* pick = threadIdx.x % 3 == 0 ? a : threadIdx.x % 3 == 1 ? b : own;
    if (which) pick = threadIdx.x % 2 ? pick : out + 64;
    out[threadIdx.x] = pick[pick == own ? which : (threadIdx.x + 1) % 64];
}

extern "C" __global__ void integer_division(const int* x, const int* y, int* out, long long* wide)
{
    int i = threadIdx.x;
    int a = x[i], b = y[i];
    out[4 * i] = a / b;
    out[4 * i + 1] = a % b;
    out[4 * i + 2] = unsigned(a) / unsigned(b);
    out[4 * i + 3] = unsigned(a) % unsigned(b);
    long long c = (long long)a * 1234567891ll, d = b;
    wide[4 * i] = c / d;
    wide[4 * i + 1] = c % d;
    wide[4 * i + 2] = (unsigned long long)c / (unsigned long long)d;
    wide[4 * i + 3] = __mul64hi(c, c ^ d);
}

extern "C" __global__ void bit_tricks(const unsigned* x, unsigned* out)
{
    unsigned v = x[threadIdx.x], w = x[(threadIdx.x + 1) % blockDim.x], *o = out + 12 * threadIdx.x;
    o[0] = __popc(v);
    o[1] = __clz(v);
    o[2] = __brev(v);
    o[3] = __ffs(v);
    o[4] = __byte_perm(v, w, 0x5140);
    o[5] = __byte_perm(v, w, w & 0xffff);
    o[6] = __funnelshift_l(v, w, w & 63);
    o[7] = __funnelshift_rc(v, w, w & 63);
    o[8] = __sad(int(v), int(w), 7);
    o[9] = __dp4a(int(v), int(w), 11);
    o[10] = __umulhi(v, w) + __mulhi(int(v), int(w));
    o[11] = (v >> 3 & 0x1f) | (w << 5 & 0xff00) | __vaddus4(v, w);
}
