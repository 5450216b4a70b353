__device__ float next_bfloat16(float x, float to) {
  __nv_bfloat16 h = store_bfloat16(x);
  x = load_bfloat16(h), to = load_bfloat16(store_bfloat16(to));
  if (x != x || to != to) return x + to;
  if (x == to) return to;
  if (x == 0) return copysignf(__int_as_float(0x10000), to);
  h.bits += (x < to) == (x > 0) ? 1 : -1;
  return load_bfloat16(h);
}
