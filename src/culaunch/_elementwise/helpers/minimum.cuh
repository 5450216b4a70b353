// The smaller of two; NaN if one of them is.
template <class T>
__device__ T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
