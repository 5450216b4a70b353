// The mathematics library and arithmetic in every format.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void float_functions(const float* x, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i], *o = out + 16 * i;
    o[0] = sinf(v);
    o[1] = cosf(v * 100.0f);
    o[2] = tanf(v);
    o[3] = expf(v);
    o[4] = logf(fabsf(v) + 0.1f);
    o[5] = powf(fabsf(v), 1.7f);
    o[6] = sqrtf(fabsf(v));
    o[7] = rsqrtf(fabsf(v) + 0.1f);
    o[8] = erff(v);
    o[9] = tanhf(v);
    o[10] = atan2f(v, 0.7f);
    o[11] = cbrtf(v);
    o[12] = fmodf(v, 0.3f);
    o[13] = lgammaf(fabsf(v) + 0.5f);
    o[14] = 1.0f / v;
    o[15] = sinf(v * 100000.0f);
}

extern "C" __global__ void double_functions(const double* x, double* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i], *o = out + 12 * i;
    o[0] = sin(v);
    o[1] = cos(v * 100.0);
    o[2] = exp(v);
    o[3] = log(fabs(v) + 0.1);
    o[4] = pow(fabs(v), 1.7);
    o[5] = sqrt(fabs(v));
    o[6] = 1.0 / v;
    o[7] = erf(v);
    o[8] = tanh(v);
    o[9] = atan2(v, 0.7);
    o[10] = cbrt(v);
    o[11] = floor(v * 10) + fma(v, v, 1.0) + rint(v) + trunc(v * 3);
}

extern "C" __global__ void half_arithmetic(const __half* x, const __half* y, __half* out)
{
    __half a = x[threadIdx.x], b = y[threadIdx.x], *o = out + 8 * threadIdx.x;
    o[0] = a + b;
    o[1] = a * b;
    o[2] = __hfma(a, b, a);
    o[3] = a / b;
    o[4] = __hmax(a, b);
    o[5] = a < b ? a : -b;
    o[6] = __float2half(__half2float(a) * 3.0f);
    o[7] = __low2half(__hadd2(__halves2half2(a, b), __halves2half2(b, b)));
}

extern "C" __global__ void bfloat_arithmetic(const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* out)
{
    __nv_bfloat16 a = x[threadIdx.x], b = y[threadIdx.x], *o = out + 4 * threadIdx.x;
    o[0] = a + b;
    o[1] = a * b;
    o[2] = __hfma(a, b, b);
    o[3] = __float2bfloat16(__bfloat162float(a) / 3.0f);
}

extern "C" __global__ void rounding(const float* x, const float* y, float* out, int* whole)
{
    float a = x[threadIdx.x], b = y[threadIdx.x], *o = out + 16 * threadIdx.x;
    o[0] = __fadd_rn(a, b), o[1] = __fadd_rz(a, b), o[2] = __fadd_rd(a, b), o[3] = __fadd_ru(a, b);
    o[4] = __fmul_rn(a, b), o[5] = __fmul_rz(a, b), o[6] = __fmul_rd(a, b), o[7] = __fmul_ru(a, b);
    o[8] = __fmaf_rn(a, b, a), o[9] = __fmaf_rz(a, b, a), o[10] = __fmaf_rd(a, b, a), o[11] = __fmaf_ru(a, b, a);
    o[12] = __fdiv_rn(a, b), o[13] = __fdiv_ru(a, b), o[14] = __fsqrt_rn(fabsf(a)), o[15] = __frcp_rd(b);
    int* w = whole + 4 * threadIdx.x;
    w[0] = __float2int_rn(a), w[1] = __float2int_rz(a), w[2] = __float2int_rd(a), w[3] = __float2int_ru(a);
}
