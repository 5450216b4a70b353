#include <cuda/std/complex>
template <class T>
__device__ cuda::std::complex<T> to_std(complex<T> x) {
  return {x.re, x.im};
}
template <class T>
__device__ complex<T> from_std(cuda::std::complex<T> x) {
  return {x.real(), x.imag()};
}
