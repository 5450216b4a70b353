template <class T>
__device__ complex<T> complex_power(complex<T> base, complex<T> exponent) {
  if (exponent.re == 0 && exponent.im == 0) return {1, 0};
  if (base.re == 0 && base.im == 0 && exponent.re > 0) return {0, 0};
  return from_std(cuda::std::pow(to_std(base), to_std(exponent)));
}
