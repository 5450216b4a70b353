// By squaring, modulo 2^bits; 0 for a negative exponent, unless the base is 1 or -1.
template <class T>
__device__ T integer_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base != (T)-1 ? 0 : exponent % 2 != 0 ? (T)-1 : 1;
  unsigned long long result = 1, factor = (unsigned long long)base;
  for (; exponent > 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return (T)result;
}
