__device__ __nv_bfloat16 store_bfloat16(float x) {
  __nv_bfloat16 half;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
  return half;
}
