template <class T>
__device__ complex<T> scaled(complex<T> x, double factor) {
  return {x.re * (T)factor, x.im * (T)factor};
}
