struct RawBfloat16 {
  const __nv_bfloat16* at;
  __device__ float operator[](long long i) const { return load_bfloat16(at[i]); }
};
