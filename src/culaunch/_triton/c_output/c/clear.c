/* Set an array to zero before a launch on a grid that CUDA allows. */
static CUresult culaunch_clear(const culaunch_variant *variant, CUstream stream, unsigned x,
                               unsigned y, unsigned z, CUdeviceptr array, uint64_t bytes) {
  if (x > 2147483647u / variant->ctas || y > 65535 || z > 65535) return CUDA_ERROR_INVALID_VALUE;
  return bytes == 0 ? CUDA_SUCCESS : cuMemsetD8Async(array, 0, (size_t)bytes, stream);
}
