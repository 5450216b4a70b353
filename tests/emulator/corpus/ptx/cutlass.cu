// CuTe: layouts, tiled copies and matrix instructions of CUTLASS 4.2. NVRTC does not compile its
// headers with the newest CCCL, so the PTX is kept. Make it with the headers of the package
// nvidia-cutlass, in its folder cutlass_library/source/include:
//     nvcc -ptx -arch=compute_80 -std=c++17 -I INCLUDE cutlass.cu -o cutlass.ptx
#include <cute/tensor.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/algorithm/gemm.hpp>
#include <cute/algorithm/copy.hpp>

using namespace cute;

// The layouts of rows and columns differ: each thread moves four elements through shared memory.
extern "C" __global__ void cutlass_transpose(const int* x, int* y)
{
    __shared__ int box[32 * 32];
    auto from = make_tensor(make_gmem_ptr(x), make_layout(Shape<_32, _32>{}, LayoutRight{}));
    auto to = make_tensor(make_gmem_ptr(y), make_layout(Shape<_32, _32>{}, LayoutRight{}));
    auto rows = make_tensor(make_smem_ptr(box), composition(Swizzle<5, 0, 5>{}, make_layout(Shape<_32, _32>{}, LayoutRight{})));
    auto columns = make_tensor(make_smem_ptr(box), composition(Swizzle<5, 0, 5>{}, make_layout(Shape<_32, _32>{}, LayoutLeft{})));
    auto threads = make_layout(Shape<_8, _32>{}, LayoutRight{});
    copy(local_partition(from, threads, threadIdx.x), local_partition(rows, threads, threadIdx.x));
    __syncthreads();
    copy(local_partition(columns, threads, threadIdx.x), local_partition(to, threads, threadIdx.x));
}

extern "C" __global__ void cutlass_matmul(const half_t* a, const half_t* b, float* c)
{
    // c (64 x 64) = a (64 x 64) * b (64 x 64, transposed), by four warps.
    __shared__ half_t left[64 * 64], right[64 * 64];
    auto shape = make_layout(Shape<_64, _64>{}, LayoutRight{});
    auto g_a = make_tensor(make_gmem_ptr(a), shape), g_b = make_tensor(make_gmem_ptr(b), shape);
    auto g_c = make_tensor(make_gmem_ptr(c), shape);
    auto s_a = make_tensor(make_smem_ptr(left), shape), s_b = make_tensor(make_smem_ptr(right), shape);
    auto copier = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, half_t>{},
        make_layout(Shape<_16, _8>{}, LayoutRight{}), Layout<Shape<_1, _8>>{});
    auto part = copier.get_slice(threadIdx.x);
    copy(copier, part.partition_S(g_a), part.partition_D(s_a));
    copy(copier, part.partition_S(g_b), part.partition_D(s_b));
    cp_async_fence();
    cp_async_wait<0>();
    __syncthreads();
    auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2, _1>>{});
    auto thread = mma.get_slice(threadIdx.x);
    auto sums = thread.partition_fragment_C(g_c);
    clear(sums);
    auto r_a = thread.partition_fragment_A(s_a);
    auto r_b = thread.partition_fragment_B(s_b);
    copy(thread.partition_A(s_a), r_a);
    copy(thread.partition_B(s_b), r_b);
    gemm(mma, r_a, r_b, sums);
    copy(sums, thread.partition_C(g_c));
}
