"""C++ that generated kernels call: each piece is put into a source only where it is used."""

from __future__ import annotations

import re

# Everything that a pack of elements needs; always there.
PACK = """\
// Elements that are loaded and stored together.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T at[N];
};
"""

HELPERS = {
    "__half": """\
struct __half {
  unsigned short bits;
};
""",
    "__nv_bfloat16": """\
struct __nv_bfloat16 {
  unsigned short bits;
};
""",
    "complex": """\
template <class T>
struct alignas(2 * sizeof(T)) complex {
  T re, im;
};
template <class T>
__device__ complex<T> operator+(complex<T> a, complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
__device__ complex<T> operator-(complex<T> a, complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
__device__ complex<T> operator*(complex<T> a, complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Smith's division: no intermediate overflows that the quotient does not.
template <class T>
__device__ complex<T> operator/(complex<T> a, complex<T> b) {
  if (fabs(b.re) >= fabs(b.im)) {
    if (b.re == 0) return {a.re / fabs(b.re), a.im / fabs(b.re)};
    const T ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  const T ratio = b.re / b.im, scale = 1 / (b.re * ratio + b.im);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T>
__device__ bool operator==(complex<T> a, complex<T> b) {
  return a.re == b.re && a.im == b.im;
}
template <class T>
__device__ bool operator!=(complex<T> a, complex<T> b) {
  return !(a == b);
}
""",
    "to_std": """\
#include <cuda/std/complex>
template <class T>
__device__ cuda::std::complex<T> to_std(complex<T> x) {
  return {x.re, x.im};
}
template <class T>
__device__ complex<T> from_std(cuda::std::complex<T> x) {
  return {x.real(), x.imag()};
}
""",
    "scaled": """\
template <class T>
__device__ complex<T> scaled(complex<T> x, double factor) {
  return {x.re * (T)factor, x.im * (T)factor};
}
""",
    "complex_expm1": """\
template <class T>
__device__ complex<T> complex_expm1(complex<T> x) {
  if (x.im == 0) return {expm1(x.re), x.im};
  if (isinf(x.re)) {
    if (x.re < 0) return {-1, isfinite(x.im) ? 0 * sin(x.im) : 0};
    if (!isfinite(x.im)) return {x.re, x.im - x.im};
  }
  const T half_sine = sin(x.im / 2), grown = expm1(x.re);
  return {grown * cos(x.im) - 2 * half_sine * half_sine, (grown + 1) * sin(x.im)};
}
""",
    "complex_log1p": """\
template <class T>
__device__ complex<T> complex_log1p(complex<T> x) {
  // log|1 + x| of small x without the rounding of 1 + x.
  const T near = fabs(x.re) < (T)0.5 && fabs(x.im) < (T)0.5
                     ? (T)0.5 * log1p(x.re * (2 + x.re) + x.im * x.im)
                     : log(hypot(1 + x.re, x.im));
  return {near, atan2(x.im, 1 + x.re)};
}
""",
    "complex_power": """\
template <class T>
__device__ complex<T> complex_power(complex<T> base, complex<T> exponent) {
  if (exponent.re == 0 && exponent.im == 0) return {1, 0};
  if (base.re == 0 && base.im == 0 && exponent.re > 0) return {0, 0};
  return from_std(cuda::std::pow(to_std(base), to_std(exponent)));
}
""",
    "complex_sign": """\
template <class T>
__device__ complex<T> complex_sign(complex<T> x) {
  const T size = hypot(x.re, x.im);
  if (size == 0) return {0, 0};
  if (isinf(x.re) && isfinite(x.im)) return {copysign((T)1, x.re), 0};
  if (isinf(x.im) && isfinite(x.re)) return {0, copysign((T)1, x.im)};
  return {x.re / size, x.im / size};
}
""",
    "load_half": """\
__device__ float load_half(__half x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
}
""",
    "store_half": """\
__device__ __half store_half(float x) {
  __half half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  return half;
}
""",
    "load_bfloat16": """\
__device__ float load_bfloat16(__nv_bfloat16 x) { return __int_as_float((int)x.bits << 16); }
""",
    "store_bfloat16": """\
__device__ __nv_bfloat16 store_bfloat16(float x) {
  __nv_bfloat16 half;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  return half;
}
""",
    "to_odd": """\
// To float with the lost bits kept in the last one, so that rounding again rounds once.
__device__ float to_odd(double x) {
  const float down = __double2float_rz(x);
  return (double)down == x || x != x ? down : __int_as_float(__float_as_int(down) | 1);
}
""",
    "half_tanh": """\
// tanh to 2^-16, enough for half precision: 1 - 2 / (2^(2x log2 e) + 1), or a series near 0.
__device__ float half_tanh(float x) {
  float power, inverse;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 2.885390082f));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(power + 1));
  return fabsf(x) < 0.04f ? x - x * x * (x * 0.33333334f) : 1 - 2 * inverse;
}
""",
    "half_divide": """\
// Two units in the last place of float: half precision does not see them.
__device__ float half_divide(float x, float y) {
  float quotient;
  asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(x), "f"(y));
  return quotient;
}
""",
    "half_sqrt": """\
__device__ float half_sqrt(float x) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
""",
    "next_half": """\
__device__ float next_half(float x, float to) {
  __half h = store_half(x);
  x = load_half(h), to = load_half(store_half(to));
  if (x != x || to != to) return x + to;
  if (x == to) return to;
  if (x == 0) return copysignf(5.9604645e-8f, to);
  h.bits += (x < to) == (x > 0) ? 1 : -1;
  return load_half(h);
}
""",
    "next_bfloat16": """\
__device__ float next_bfloat16(float x, float to) {
  __nv_bfloat16 h = store_bfloat16(x);
  x = load_bfloat16(h), to = load_bfloat16(store_bfloat16(to));
  if (x != x || to != to) return x + to;
  if (x == to) return to;
  if (x == 0) return copysignf(__int_as_float(0x10000), to);
  h.bits += (x < to) == (x > 0) ? 1 : -1;
  return load_bfloat16(h);
}
""",
    "left_shift": """\
template <class T>
__device__ T left_shift(T x, T count) {
  if (count < 0 || count >= (T)(8 * sizeof(T))) return 0;
  return (T)((unsigned long long)x << count);
}
""",
    "right_shift": """\
template <class T>
__device__ T right_shift(T x, T count) {
  if (count < 0 || count >= (T)(8 * sizeof(T))) return x < 0 ? (T)-1 : (T)0;
  return (T)(x >> count);
}
""",
    "maximum": """\
// The greater of two; NaN if one of them is.
template <class T>
__device__ T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
""",
    "minimum": """\
// The smaller of two; NaN if one of them is.
template <class T>
__device__ T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
""",
    "floor_divide": """\
// The quotient rounded down, as Python's //; 0 for an integer divided by 0.
template <class T>
__device__ T floor_divide(T a, T b) {
  if (b == 0) return 0;
  if ((T)-1 < (T)0 && b == (T)-1) return (T)(0 - (unsigned long long)a);
  const T quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? (T)(quotient - 1) : quotient;
}
template <class T>
__device__ T floor_divide_real(T a, T b) {
  T rest = fmod(a, b);
  if (b == 0) return a / b;
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign((T)0, a / b);
  const T down = floor(quotient);
  return quotient - down > (T)0.5 ? down + 1 : down;
}
__device__ float floor_divide(float a, float b) { return floor_divide_real(a, b); }
__device__ double floor_divide(double a, double b) { return floor_divide_real(a, b); }
""",
    "modulo": """\
// The rest of floor_divide, with the divisor's sign, as Python's %.
template <class T>
__device__ T modulo(T a, T b) {
  if (b == 0 || ((T)-1 < (T)0 && b == (T)-1)) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;
}
template <class T>
__device__ T modulo_real(T a, T b) {
  const T rest = fmod(a, b);
  if (rest == 0) return copysign((T)0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ float modulo(float a, float b) { return modulo_real(a, b); }
__device__ double modulo(double a, double b) { return modulo_real(a, b); }
""",
    "integer_power": """\
// By squaring, modulo 2^bits; 0 for a negative exponent, unless the base is 1 or -1.
template <class T>
__device__ T integer_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base != (T)-1 ? 0 : exponent % 2 != 0 ? (T)-1 : 1;
  unsigned long long result = 1, factor = (unsigned long long)base;
  for (; exponent > 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return (T)result;
}
""",
    "inverse_root": """\
__device__ float inverse_root(float x) { return rsqrtf(x); }
// rsqrt.approx.f64 is not the same everywhere.
__device__ double inverse_root(double x) { return 1 / sqrt(x); }
""",
    "log_add_exp": """\
template <class T>
__device__ T log_add_exp(T a, T b) {
  if (a == b) return a + (T)0.69314718055994531;
  const T apart = fabs(a - b), larger = a > b ? a : b;
  return apart == apart ? larger + log1p(exp(-apart)) : a + b;
}
""",
    "Indexer": """\
// CuPy's _ind: how many elements there are.
struct Indexer {
  long long count;
  __device__ long long size() const { return count; }
};
""",
    "RawHalf": """\
struct RawHalf {
  const __half* at;
  __device__ float operator[](long long i) const { return load_half(at[i]); }
};
""",
    "RawBfloat16": """\
struct RawBfloat16 {
  const __nv_bfloat16* at;
  __device__ float operator[](long long i) const { return load_bfloat16(at[i]); }
};
""",
    "Division": """\
// A division by a number that is known before the launch: quotients of indices below 2^31.
struct Division {
  unsigned divisor, factor, shift;
  __device__ unsigned operator()(unsigned index) const {
    return (__umulhi(index, factor) + index) >> shift;
  }
};
""",
}

# What takes the place of a helper where the sign of a NaN is asked for: conversions to and from
# half precision make one NaN of all.
_WITH_SIGNS = {
    "load_half": """\
__device__ float load_half(__half x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return __int_as_float((__float_as_int(value) & 0x7fffffff) | (x.bits & 0x8000) << 16);
}
""",
    "store_half": """\
__device__ __half store_half(float x) {
  __half half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  half.bits = (half.bits & 0x7fff) | (__float_as_int(x) >> 16 & 0x8000);
  return half;
}
""",
    "store_bfloat16": """\
__device__ __nv_bfloat16 store_bfloat16(float x) {
  __nv_bfloat16 half;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  half.bits = (half.bits & 0x7fff) | (__float_as_int(x) >> 16 & 0x8000);
  return half;
}
""",
}
_SIGNS = re.compile(r"\b(?:signbit|copysignf?)\b")

_NEEDS = {name: re.compile(rf"(?<![\w:]){name}\b") for name in HELPERS}
_ALSO = {"from_std": "to_std", "cuda::std": "to_std"}


def helpers_for(code: str) -> str:
    """Return the helpers that a piece of C++ calls, and those that they call, in order."""
    helpers = HELPERS | _WITH_SIGNS if _SIGNS.search(code) else HELPERS
    wanted: set[str] = set()
    open_ends = [code]
    while open_ends:
        text = open_ends.pop()
        for name, pattern in _NEEDS.items():
            if name not in wanted and (
                pattern.search(text) or any(k in text and v == name for k, v in _ALSO.items())
            ):
                wanted.add(name)
                open_ends.append(helpers[name])
    return "\n".join(helpers[name] for name in HELPERS if name in wanted)
