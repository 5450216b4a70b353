// c = a * b for square matrices of n x n; a block of 16 x 16 threads for a tile of the same size.
extern "C" __global__ void matmul(float* c, const float* a, const float* b, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += a[row * n + i] * b[i * n + column];
  c[row * n + column] = sum;
}
