template <class T>
__device__ T left_shift(T x, T count) {
  if (count < 0 || count >= (T)(8 * sizeof(T))) return 0;
  return (T)((unsigned long long)x << count);
}
