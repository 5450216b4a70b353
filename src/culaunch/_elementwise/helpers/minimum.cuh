// The lesser of two; NaN if one of them is.
template <class T>
__device__ T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
#if __CUDA_ARCH__ >= 800
template <>
__device__ float minimum(float a, float b) {
  float lesser;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(lesser) : "f"(a), "f"(b));
  return lesser;
}
#endif
