template <class T>
__device__ complex<T> complex_expm1(complex<T> x) {
  if (x.im == 0) return {expm1(x.re), x.im};
  if (isinf(x.re)) {
    if (x.re < 0) return {-1, isfinite(x.im) ? 0 * sin(x.im) : 0};
    if (!isfinite(x.im)) return {x.re, x.im - x.im};
  }
  const T half_sine = sin(x.im / 2), grown = expm1(x.re);
  return {grown * cos(x.im) - 2 * half_sine * half_sine, (grown + 1) * sin(x.im)};
}
