// A divisor of many numbers: two multiplications instead of a division, within 1.5 units in the
// last place. The scale keeps the reciprocal of very small and very large numbers normal.
struct Reciprocal {
  float inverse, scale;
  Reciprocal() = default;
  __device__ explicit Reciprocal(float divisor) {
    const float size = fabsf(divisor);
    scale = size > 1.8446744e19f ? 5.4210109e-20f : size < 5.4210109e-20f ? 1.8446744e19f : 1.0f;
    inverse = 1.0f / (divisor * scale);
  }
  __device__ float of(float x) const { return x * inverse * scale; }
};
