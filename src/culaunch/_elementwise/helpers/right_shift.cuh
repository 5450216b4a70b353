template <class T>
__device__ T right_shift(T x, T count) {
  if (count < 0 || count >= (T)(8 * sizeof(T))) return x < 0 ? (T)-1 : (T)0;
  return (T)(x >> count);
}
