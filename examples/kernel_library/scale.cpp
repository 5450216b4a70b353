// A kernel library: y = x * factor, for every framework that speaks TVM-FFI. No CUDA runtime, no
// framework and no Python are linked; the kernels are inside.
#include <culaunch/tvm_ffi.h>

#include <algorithm>
#include <cstdint>

CULAUNCH_EMBED_CUBIN(scale_kernels);

namespace {

using culaunch::ffi::kBFloat16;
using culaunch::ffi::kFloat16;
using culaunch::ffi::kFloat32;
using culaunch::ffi::Tensor;
using culaunch::ffi::TensorView;

// Scale x into y, which the caller allocated.
void ScaleInto(TensorView y, TensorView x, double factor) {
  CULAUNCH_CHECK_DEVICE(x);
  CULAUNCH_CHECK_CONTIGUOUS(x);
  CULAUNCH_CHECK_SAME_DEVICE(y, x);
  CULAUNCH_CHECK_SAME_DTYPE(y, x);
  CULAUNCH_CHECK_SAME_SHAPE(y, x);
  CULAUNCH_CHECK_CONTIGUOUS(y);
  const culaunch::Kernel& kernel =
      CULAUNCH_DISPATCH_DTYPE(scale_kernels, "scale_", x, kFloat32, kFloat16, kBFloat16);

  const std::int64_t n = x.numel();
  if (n == 0) return;
  const unsigned block = 256;
  const auto grid = static_cast<unsigned>(std::min<std::int64_t>((n + block - 1) / block, 1 << 16));
  // The stream carries its device: the launch goes to the tensors', whatever device is current.
  kernel({grid, block, 0, culaunch::ffi::CurrentStream(x)}, culaunch::ffi::Data(y),
         culaunch::ffi::Data(x), static_cast<float>(factor), n);
}

// Scale x into a new tensor of the caller's framework.
Tensor Scale(TensorView x, double factor) {
  CULAUNCH_CHECK_DEVICE(x);
  Tensor y = culaunch::ffi::EmptyLike(x);
  ScaleInto(y, x, factor);
  return y;
}

}  // namespace

CULAUNCH_EXPORT(scale, Scale);
CULAUNCH_EXPORT(scale_into, ScaleInto);
