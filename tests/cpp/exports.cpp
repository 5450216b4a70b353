// Whatever kind of function is exported: with and without a result, noexcept, static, in a
// namespace.
#include <culaunch/tvm_ffi.h>

#include <cstdint>

namespace library {
int64_t Plain(int64_t x) { return x; }
}  // namespace library
static int64_t Static(culaunch::ffi::TensorView x) noexcept { return x.numel(); }
static void Nothing() {}
static tvm::ffi::String Text(tvm::ffi::Bytes bytes, double) { return tvm::ffi::String(bytes); }

CULAUNCH_EXPORT(plain, library::Plain);
CULAUNCH_EXPORT(static_, Static);
CULAUNCH_EXPORT(nothing, Nothing);
CULAUNCH_EXPORT(text, Text);
