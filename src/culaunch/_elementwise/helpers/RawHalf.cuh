struct RawHalf {
  const __half* at;
  __device__ float operator[](long long i) const { return load_half(at[i]); }
};
