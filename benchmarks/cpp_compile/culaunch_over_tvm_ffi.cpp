// A function of tensors with one launch, by culaunch over TVM-FFI.
#include <culaunch/culaunch.h>
#include <culaunch/tvm_ffi.h>

CULAUNCH_EMBED_CUBIN(kernels);

void Scale(tvm::ffi::TensorView y, tvm::ffi::TensorView x, double factor) {
  CULAUNCH_CHECK_CONTIGUOUS(x);
  const int n = static_cast<int>(x.numel());
  const uint32_t grid = static_cast<uint32_t>(n + 255) / 256;
  CULAUNCH_GET_KERNEL(kernels, "scale")
  ({grid, 256, 0, culaunch::ffi::CurrentStream(x)}, culaunch::ffi::Data(y), culaunch::ffi::Data(x),
   static_cast<float>(factor), n);
}

CULAUNCH_EXPORT(scale, Scale);
