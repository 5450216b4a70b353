template <class T>
__device__ complex<T> complex_log1p(complex<T> x) {
  // log|1 + x| of small x without the rounding of 1 + x.
  const T near = fabs(x.re) < (T)0.5 && fabs(x.im) < (T)0.5
                     ? (T)0.5 * log1p(x.re * (2 + x.re) + x.im * x.im)
                     : log(hypot(1 + x.re, x.im));
  return {near, atan2(x.im, 1 + x.re)};
}
