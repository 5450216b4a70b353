__device__ __half store_half(float x) {
  __half half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  half.bits = (half.bits & 0x7fff) | (__float_as_int(x) >> 16 & 0x8000);
  return half;
}
