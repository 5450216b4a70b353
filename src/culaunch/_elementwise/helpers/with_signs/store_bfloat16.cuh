__device__ __nv_bfloat16 store_bfloat16(float x) {
  __nv_bfloat16 half;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  half.bits = (half.bits & 0x7fff) | (__float_as_int(x) >> 16 & 0x8000);
  return half;
}
