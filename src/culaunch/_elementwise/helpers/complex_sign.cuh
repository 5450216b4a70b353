template <class T>
__device__ complex<T> complex_sign(complex<T> x) {
  const T size = hypot(x.re, x.im);
  if (size == 0) return {0, 0};
  if (isinf(x.re) && isfinite(x.im)) return {copysign((T)1, x.re), 0};
  if (isinf(x.im) && isfinite(x.re)) return {0, copysign((T)1, x.im)};
  return {x.re / size, x.im / size};
}
