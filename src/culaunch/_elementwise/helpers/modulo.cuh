// The rest of floor_divide, with the divisor's sign, as Python's %.
template <class T>
__device__ T modulo(T a, T b) {
  if (b == 0 || ((T)-1 < (T)0 && b == (T)-1)) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;
}
template <class T>
__device__ T modulo_real(T a, T b) {
  const T rest = fmod(a, b);
  if (rest == 0) return copysign((T)0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ float modulo(float a, float b) { return modulo_real(a, b); }
__device__ double modulo(double a, double b) { return modulo_real(a, b); }
