template <class T>
struct alignas(2 * sizeof(T)) complex {
  T re, im;
};
template <class T>
__device__ complex<T> operator+(complex<T> a, complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
__device__ complex<T> operator-(complex<T> a, complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
__device__ complex<T> operator*(complex<T> a, complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Smith's division: no intermediate overflows that the quotient does not.
template <class T>
__device__ complex<T> operator/(complex<T> a, complex<T> b) {
  if (fabs(b.re) >= fabs(b.im)) {
    if (b.re == 0) return {a.re / fabs(b.re), a.im / fabs(b.re)};
    const T ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  const T ratio = b.re / b.im, scale = 1 / (b.re * ratio + b.im);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T>
__device__ bool operator==(complex<T> a, complex<T> b) {
  return a.re == b.re && a.im == b.im;
}
template <class T>
__device__ bool operator!=(complex<T> a, complex<T> b) {
  return !(a == b);
}
