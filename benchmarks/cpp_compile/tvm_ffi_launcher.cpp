// One launch by TVM-FFI's launcher, over the CUDA runtime.
#include <tvm/ffi/extra/cuda/cubin_launcher.h>

TVM_FFI_EMBED_CUBIN(kernels);

void Scale(float* y, const float* x, float factor, int n, cudaStream_t stream) {
  static auto kernel = TVM_FFI_EMBED_CUBIN_GET_KERNEL(kernels, "scale");
  void* arguments[] = {&y, &x, &factor, &n};
  const tvm::ffi::dim3 grid(static_cast<unsigned>(n + 255) / 256);
  const tvm::ffi::dim3 block(256);
  TVM_FFI_CHECK_CUBIN_LAUNCHER_CUDA_ERROR(kernel.Launch(arguments, grid, block, stream));
}
