// The greater of two; NaN if one of them is.
template <class T>
__device__ T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
