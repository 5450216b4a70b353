// The quotient rounded down, as Python's //; 0 for an integer divided by 0.
template <class T>
__device__ T floor_divide(T a, T b) {
  if (b == 0) return 0;
  if ((T)-1 < (T)0 && b == (T)-1) return (T)(0 - (unsigned long long)a);
  const T quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? (T)(quotient - 1) : quotient;
}
template <class T>
__device__ T floor_divide_real(T a, T b) {
  T rest = fmod(a, b);
  if (b == 0) return a / b;
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign((T)0, a / b);
  const T down = floor(quotient);
  return quotient - down > (T)0.5 ? down + 1 : down;
}
__device__ float floor_divide(float a, float b) { return floor_divide_real(a, b); }
__device__ double floor_divide(double a, double b) { return floor_divide_real(a, b); }
