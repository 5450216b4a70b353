__device__ float next_half(float x, float to) {
  __half h = store_half(x);
  x = load_half(h), to = load_half(store_half(to));
  if (x != x || to != to) return x + to;
  if (x == to) return to;
  if (x == 0) return copysignf(5.9604645e-8f, to);
  h.bits += (x < to) == (x > 0) ? 1 : -1;
  return load_half(h);
}
