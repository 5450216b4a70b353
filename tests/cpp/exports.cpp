// Exports of all kinds of functions: with and without a result, noexcept, static, in a
// namespace.
#include <culaunch/tvm_ffi.h>

#include <cstdint>

namespace library {
int64_t Plain(int64_t x) { return x; }
}  // namespace library
static int64_t Static(culaunch::ffi::TensorView x) noexcept { return x.numel(); }
static void Nothing() {}
static tvm::ffi::String Text(tvm::ffi::Bytes bytes, double) { return tvm::ffi::String(bytes); }

CULAUNCH_EMBED_CUBIN(kernels);
static culaunch::ffi::Tensor Checked(culaunch::ffi::TensorView y, culaunch::ffi::TensorView x) {
  CULAUNCH_CHECK_DEVICE(x);
  CULAUNCH_CHECK_SAME_DEVICE(y, x);
  CULAUNCH_CHECK_DTYPE(x, culaunch::ffi::kFloat32, culaunch::ffi::kInt8);
  CULAUNCH_CHECK_DTYPE(x, kFloat32, kInt8);  // as docs/kernel_libraries.md has it
  CULAUNCH_CHECK_SAME_DTYPE(y, x);
  CULAUNCH_CHECK_DIMENSIONS(x, 2);
  CULAUNCH_CHECK_SAME_SHAPE(y, x);
  CULAUNCH_CHECK_CONTIGUOUS(x);
  CULAUNCH_CHECK_SHAPE(x, y.size(0), -1);
  CULAUNCH_CHECK_NOT_EMPTY(x);
  CULAUNCH_CHECK_ALIGNED(x, 16);
  const culaunch::ffi::TensorGuard guard(x);
  CULAUNCH_DISPATCH_DTYPE(kernels, "k_", x, culaunch::ffi::kFloat32, kInt8)
  ({1, 32, 0, culaunch::ffi::CurrentStream(x)}, culaunch::ffi::Data(y), culaunch::ffi::Data(x));
  return culaunch::ffi::EmptyLike(x);
}

CULAUNCH_EXPORT(checked, Checked);
CULAUNCH_EXPORT(plain, library::Plain, "x");
CULAUNCH_EXPORT(static_, Static);
CULAUNCH_EXPORT(nothing, Nothing);
CULAUNCH_EXPORT(text, Text, "bytes, number", "Say it.");
