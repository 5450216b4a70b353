// Reads of shared memory that nobody wrote. First, programs that are right: what they read so is
// never used.
#include <cub/block/block_merge_sort.cuh>
#include <cub/warp/warp_merge_sort.cuh>

struct Less {
    template <class T> __device__ bool operator()(const T& a, const T& b) const { return a < b; }
};

extern "C" __global__ void block_merge_sort(int* keys)
{
    using Sort = cub::BlockMergeSort<int, 128, 3>;
    __shared__ Sort::TempStorage storage;
    int mine[3];
    for (int i = 0; i < 3; ++i) mine[i] = keys[(blockIdx.x * 128 + threadIdx.x) * 3 + i];
    Sort(storage).Sort(mine, Less());
    for (int i = 0; i < 3; ++i) keys[(blockIdx.x * 128 + threadIdx.x) * 3 + i] = mine[i];
}

extern "C" __global__ void block_merge_sort_part(double* keys, int* values, int n)
{
    using Sort = cub::BlockMergeSort<double, 64, 4, int>;
    __shared__ Sort::TempStorage storage;
    double mine[4];
    int other[4];
    for (int i = 0; i < 4; ++i) {
        int at = threadIdx.x * 4 + i;
        mine[i] = at < n ? keys[at] : 0;
        other[i] = at < n ? values[at] : 0;
    }
    Sort(storage).StableSort(mine, other, Less(), n, 1e300);
    for (int i = 0; i < 4; ++i) {
        int at = threadIdx.x * 4 + i;
        if (at < n) keys[at] = mine[i], values[at] = other[i];
    }
}

extern "C" __global__ void warp_merge_sort(short* keys)
{
    using Sort = cub::WarpMergeSort<short, 4, 16>;
    __shared__ Sort::TempStorage storage[4];
    short mine[4];
    for (int i = 0; i < 4; ++i) mine[i] = keys[threadIdx.x * 4 + i];
    Sort(storage[threadIdx.x / 16]).Sort(mine, Less());
    for (int i = 0; i < 4; ++i) keys[threadIdx.x * 4 + i] = mine[i];
}

extern "C" __global__ void hoisted(int* out)
{
    __shared__ int s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int v = ((volatile int*)s)[threadIdx.x];
    if (threadIdx.x < 32) out[threadIdx.x] = v + 1;
}

struct alignas(16) Padded {
    char tag;
    double value;
};

extern "C" __global__ void padding(Padded* out)
{
    __shared__ Padded s[64], t[64];
    s[threadIdx.x].tag = threadIdx.x;
    s[threadIdx.x].value = threadIdx.x * 0.5;
    __syncthreads();
    // By way of registers, another shared array and registers again.
    *(int4*)&t[threadIdx.x] = *(int4*)&s[63 - threadIdx.x];
    __syncthreads();
    *(int4*)&out[threadIdx.x] = *(int4*)&t[threadIdx.x];
}

extern "C" __global__ void packed(unsigned* out)
{
    __shared__ unsigned char s[256];
    s[threadIdx.x * 4 + 1] = threadIdx.x;
    __syncthreads();
    unsigned word = *(unsigned*)&s[threadIdx.x * 4];
    out[threadIdx.x] = (word >> 8 & 0xff) + (__byte_perm(word, 0, 0x4441) << 8);
}

extern "C" __global__ void integral_row(int* row)
{
    // As cuda-samples' shfl_scan: all lanes of a warp scan the sums of fewer warps.
    __shared__ int sums[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, value = row[threadIdx.x];
    for (int i = 1; i < 32; i *= 2) {
        int n = __shfl_up_sync(~0u, value, i);
        if (lane >= i) value += n;
    }
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int sum = sums[lane];
        for (int i = 1; i < 32; i *= 2) {
            int n = __shfl_up_sync(~0u, sum, i);
            if (lane >= i) sum += n;
        }
        sums[lane] = sum;
    }
    __syncthreads();
    row[threadIdx.x] = value + (warp ? sums[warp - 1] : 0);
}

extern "C" __global__ void few_lanes(int* out)
{
    // A sum over 16 lanes: the upper ones add what lanes outside the mask have, and nobody looks.
    if (threadIdx.x % 32 >= 16) return;
    int v = threadIdx.x;
    for (int i = 8; i; i /= 2) v += __shfl_down_sync(0xffff, v, i);
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
}

extern "C" __global__ void either(int* out, int n)
{
    __shared__ int s[64];
    int i = threadIdx.x;
    if (i < n) s[i] = i;
    __syncthreads();
    bool small = bool(int(i < n) & int(((volatile int*)s)[i] < 7));
    out[i] = small;
}

extern "C" __global__ void trash_bin(int* out, int n)
{
    __shared__ int bins[5];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[int(threadIdx.x) < n ? threadIdx.x % 4 : 4], 1);
    __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = bins[threadIdx.x];
}

// Now the mistakes, each in its own way. The last element is never written.
#define BOX                                           \
    __shared__ int s[64];                             \
    int i = threadIdx.x;                              \
    if (i < 63) s[i] = i;                             \
    __syncthreads();                                  \
    volatile int* v = s;

extern "C" __global__ void to_output(int* out) { BOX out[i] = v[63 - i]; }
extern "C" __global__ void to_branch(int* out) { BOX if (v[63 - i] > 7) __nanosleep(1), out[i] = 1, __threadfence(); else out[0] = 2; }
extern "C" __global__ void to_address(int* out) { BOX out[v[63 - i] & 63] = 1; }
extern "C" __global__ void to_shared_address(int* out) { BOX out[i] = v[v[63 - i] & 31]; }
extern "C" __global__ void to_arithmetic(float* out) { BOX out[i] = sqrtf(v[63 - i] * 0.5f) + i; }
extern "C" __global__ void to_atomic(int* out) { BOX atomicAdd(out, v[63 - i]); }
extern "C" __global__ void to_shuffle(int* out) { BOX out[i] = __shfl_xor_sync(~0u, v[63 - i], 5); }
extern "C" __global__ void to_vote(unsigned* out) { BOX out[i] = __ballot_sync(~0u, v[63 - i] & 1); }
extern "C" __global__ void to_selection(int* out) { BOX out[i] = v[63 - i] > 3 ? 5 : 6; }
extern "C" __global__ void to_barrier(int* out) { BOX out[i] = __syncthreads_or(v[63 - i]); }
extern "C" __global__ void to_printf(int* out) { BOX printf("%d\n", v[63 - i]); }

__device__ __noinline__ int twice(int x) { return x * 2; }
extern "C" __global__ void to_function(int* out) { BOX out[i] = twice(v[63 - i]); }

extern "C" __global__ void to_local_array(int* out, int at)
{
    BOX
    int mine[4];
    for (int k = 0; k < 4; ++k) mine[k] = v[(63 - i + k) & 63];
    out[i] = mine[at];
}

extern "C" __global__ void to_shared_copy(int* out)
{
    BOX
    __shared__ int t[64];
    t[i] = v[63 - i] + 1;
    __syncthreads();
    out[63 - i] = ((volatile int*)t)[i];
}

extern "C" __global__ void counter(int* out)
{
    __shared__ int count;
    atomicAdd(&count, 1);
    __syncthreads();
    if (threadIdx.x == 0) out[0] = count;
}

extern "C" __global__ void foreign_lane(int* out)
{
    if (threadIdx.x >= 20) return;
    out[threadIdx.x] = __shfl_down_sync(0xfffff, threadIdx.x, 4);
}

extern "C" __global__ void lane_that_left(int* out)
{
    if (threadIdx.x % 32 >= 16) return;
    out[threadIdx.x] = __shfl_xor_sync(~0u, threadIdx.x, 16);
}

#include <cuda_fp16.h>
#include <mma.h>

extern "C" __global__ void tensor_core_tail(const half* a, const half* b, float* d, int rows, int shown)
{
    // Rows past the end of A are never written, and their products not stored.
    using namespace nvcuda::wmma;
    __shared__ __align__(32) half s[256];
    __shared__ __align__(32) float t[256];
    for (int i = threadIdx.x; i < rows * 16; i += 32) s[i] = a[i];
    __syncwarp();
    fragment<matrix_a, 16, 16, 16, half, row_major> x;
    fragment<matrix_b, 16, 16, 16, half, row_major> y;
    fragment<accumulator, 16, 16, 16, float> z;
    load_matrix_sync(x, s, 16);
    load_matrix_sync(y, b, 16);
    fill_fragment(z, 0.0f);
    mma_sync(z, x, y, z);
    store_matrix_sync(t, z, 16, mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < shown * 16; i += 32) d[i] = t[i];
}

extern "C" __global__ void int8_tail(const int* a, const int* b, int* d, int rows, int shown)
{
    // As above, with ldmatrix and mma.m16n8k32 of bytes.
    __shared__ __align__(16) int s[16 * 8];
    for (int i = threadIdx.x; i < rows * 8; i += 32) s[i] = a[i];
    __syncwarp();
    unsigned x0, x1, x2, x3, at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x % 16 * 8 + threadIdx.x / 16 * 4);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x0), "=r"(x1), "=r"(x2), "=r"(x3) : "r"(at) : "memory");
    unsigned y0 = b[threadIdx.x / 4 * 8 + threadIdx.x % 4], y1 = b[threadIdx.x / 4 * 8 + threadIdx.x % 4 + 4];
    int z[4] = {0, 0, 0, 0};
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(z[0]), "+r"(z[1]), "+r"(z[2]), "+r"(z[3]) : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(y0), "r"(y1));
    int row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
    if (row < shown) d[row * 8 + column] = z[0], d[row * 8 + column + 1] = z[1];
    if (row + 8 < shown) d[row * 8 + 64 + column] = z[2], d[row * 8 + 65 + column] = z[3];
}
