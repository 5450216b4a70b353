template <class T>
__device__ T log_add_exp(T a, T b) {
  if (a == b) return a + (T)0.69314718055994531;
  const T apart = fabs(a - b), larger = a > b ? a : b;
  return apart == apart ? larger + log1p(exp(-apart)) : a + b;
}
