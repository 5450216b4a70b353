__device__ float load_half(__half x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return __int_as_float((__float_as_int(value) & 0x7fffffff) | (x.bits & 0x8000) << 16);
}
