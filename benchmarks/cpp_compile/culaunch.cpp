// One checked launch by culaunch.h.
#include <culaunch/culaunch.h>

CULAUNCH_EMBED_CUBIN(kernels);

void Scale(float* y, const float* x, float factor, int n, CUstream stream) {
  const uint32_t grid = static_cast<uint32_t>(n + 255) / 256;
  CULAUNCH_GET_KERNEL(kernels, "scale")({grid, 256, 0, stream}, y, x, factor, n);
}
