#include <culaunch/tvm_ffi.h>

CULAUNCH_EMBED_CUBIN(kernels);

static void Scale(culaunch::ffi::TensorView y, culaunch::ffi::TensorView x, double factor) {
  CULAUNCH_CHECK_DEVICE(x);
  CULAUNCH_CHECK_DTYPE(x, culaunch::ffi::kFloat32);
  CULAUNCH_CHECK_CONTIGUOUS(x);
  CULAUNCH_CHECK_SAME_DTYPE(y, x);
  CULAUNCH_CHECK_SAME_SHAPE(y, x);
  CULAUNCH_CHECK_CONTIGUOUS(y);
  const auto n = static_cast<int>(x.numel());
  if (n == 0) return;
  const auto grid = static_cast<unsigned>((n + 255) / 256);
  CULAUNCH_GET_KERNEL(kernels, "scale")
  ({grid, 256, 0, culaunch::ffi::CurrentStream(x)}, culaunch::ffi::Data(y), culaunch::ffi::Data(x),
   static_cast<float>(factor), n);
}
CULAUNCH_EXPORT(scale, Scale, "y, x, factor", "Write x times factor to y.");
