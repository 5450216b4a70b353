"""The kernels of these tests."""

SOURCE = """
template <class T> __global__ void scale(T* y, const T* x, double a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)(x[i] * (T)a);
}
template <class T> __global__ void multiply(T* z, const T* x, const T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] * y[i];
}
"""
