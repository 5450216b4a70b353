__device__ float inverse_root(float x) { return rsqrtf(x); }
// rsqrt.approx.f64 is not the same everywhere.
__device__ double inverse_root(double x) { return 1 / sqrt(x); }
