// Checks of tensors over Apache TVM-FFI: each names the argument, the rule and the actual value.
// culaunch/tvm_ffi.h includes this.
#pragma once

#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "driver.h"
#include "tensor_text.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace ffi {

using ::tvm::ffi::ShapeView;
using ::tvm::ffi::Tensor;
using ::tvm::ffi::TensorView;

// Element types. The macros below accept only these names.
inline namespace dtypes {
constexpr DLDataType kFloat64{kDLFloat, 64, 1};
constexpr DLDataType kFloat32{kDLFloat, 32, 1};
constexpr DLDataType kFloat16{kDLFloat, 16, 1};
constexpr DLDataType kBFloat16{kDLBfloat, 16, 1};
constexpr DLDataType kFloat8E4M3FN{kDLFloat8_e4m3fn, 8, 1};
constexpr DLDataType kFloat8E5M2{kDLFloat8_e5m2, 8, 1};
constexpr DLDataType kFloat8E8M0FNU{kDLFloat8_e8m0fnu, 8, 1};
constexpr DLDataType kComplex128{kDLComplex, 128, 1};
constexpr DLDataType kComplex64{kDLComplex, 64, 1};
constexpr DLDataType kInt64{kDLInt, 64, 1};
constexpr DLDataType kInt32{kDLInt, 32, 1};
constexpr DLDataType kInt16{kDLInt, 16, 1};
constexpr DLDataType kInt8{kDLInt, 8, 1};
constexpr DLDataType kUInt64{kDLUInt, 64, 1};
constexpr DLDataType kUInt32{kDLUInt, 32, 1};
constexpr DLDataType kUInt16{kDLUInt, 16, 1};
constexpr DLDataType kUInt8{kDLUInt, 8, 1};
constexpr DLDataType kBool{kDLBool, 8, 1};
}  // namespace dtypes

// ---- words for messages

CULAUNCH_COLD inline std::string ToString(DLDataType dtype) {
  return std::string(::tvm::ffi::DLDataTypeToString(dtype));
}

CULAUNCH_COLD inline std::string ToString(DLDevice device) {
  return culaunch::detail::DeviceText(static_cast<int>(device.device_type), device.device_id);
}

CULAUNCH_COLD inline std::string ToString(ShapeView shape) {
  return culaunch::detail::ShapeText(shape.data(), shape.size());
}

CULAUNCH_COLD inline std::string ToString(std::initializer_list<DLDataType> dtypes) {
  std::string text;
  for (const DLDataType dtype : dtypes) text += (text.empty() ? "" : ", ") + ToString(dtype);
  return text;
}

// Throw an error of TVM-FFI: `kind` is the name of Python's exception. TVM_FFI_THROW does the same
// with a stream, which takes more time to compile.
[[noreturn]] CULAUNCH_COLD CULAUNCH_SEPARATE inline void Throw(const char* kind,
                                                               const std::string& message) {
  const TVMFFIByteArray* trace = TVMFFIBacktrace(__FILE__, __LINE__, TVM_FFI_FUNC_SIG, 0);
  throw ::tvm::ffi::Error(kind, message, std::string(trace->data, trace->size));
}

namespace detail {

[[noreturn]] CULAUNCH_COLD CULAUNCH_SEPARATE inline void Refuse(
    const char* kind, std::initializer_list<std::string_view> parts) {
  Throw(kind, culaunch::detail::Joined(parts));
}

// TensorView checks that the tensor has strides. This compiles the check once.
CULAUNCH_COLD CULAUNCH_SEPARATE inline ShapeView StridesOf(const TensorView& x) {
  return x.strides();
}

}  // namespace detail

// ---- checks

// The tensor is in memory that the driver in use can reach from a kernel.
inline void CheckDevice(const char* name, const TensorView& x) {
  const Driver& driver = Driver::Get();
  if (!driver.IsDeviceMemory(static_cast<int>(x.device().device_type))) {
    detail::Refuse("ValueError", {name, " must be in memory of the driver \"", driver.name(),
                                  "\" (got ", ToString(x.device()), "): move it to ",
                                  driver.IsDeviceMemory(::kDLCPU) ? "the CPU" : "a GPU", " first"});
  }
  if (x.device().device_id < 0 || x.device().device_id >= driver.device_count()) {
    detail::Refuse("ValueError",
                   {name, " is on ", ToString(x.device()), ", but the driver knows ",
                    culaunch::detail::NumberText(driver.device_count()), " device(s)"});
  }
}

inline void CheckSameDevice(const char* name, const TensorView& x, const char* other_name,
                            const TensorView& other) {
  if (x.device().device_type != other.device().device_type ||
      x.device().device_id != other.device().device_id) {
    detail::Refuse("ValueError", {name, " must be on the device of ", other_name, ", ",
                                  ToString(other.device()), " (got ", ToString(x.device()), ")"});
  }
}

inline void CheckDtype(const char* name, const TensorView& x,
                       std::initializer_list<DLDataType> allowed) {
  for (const DLDataType dtype : allowed) {
    if (x.dtype() == dtype) return;
  }
  detail::Refuse("TypeError",
                 {"the element type of ", name, " must be ", allowed.size() > 1 ? "one of " : "",
                  ToString(allowed), " (got ", ToString(x.dtype()), ")"});
}

inline void CheckSameDtype(const char* name, const TensorView& x, const char* other_name,
                           const TensorView& other) {
  if (!(x.dtype() == other.dtype())) {
    detail::Refuse("TypeError", {name, " must have the same element type as ", other_name, ", ",
                                 ToString(other.dtype()), " (got ", ToString(x.dtype()), ")"});
  }
}

inline void CheckDimensions(const char* name, const TensorView& x, int dimensions) {
  if (x.ndim() != dimensions) {
    detail::Refuse("ValueError", {name, " must have ", culaunch::detail::NumberText(dimensions),
                                  " dimension(s) (got ", culaunch::detail::NumberText(x.ndim()),
                                  ", shape ", ToString(x.shape()), ")"});
  }
}

inline void CheckSameShape(const char* name, const TensorView& x, const char* other_name,
                           const TensorView& other) {
  bool same = x.ndim() == other.ndim();
  for (int i = 0; same && i < x.ndim(); ++i) same = x.shape().data()[i] == other.shape().data()[i];
  if (!same) {
    detail::Refuse("ValueError", {name, " must have the shape of ", other_name, ", ",
                                  ToString(other.shape()), " (got ", ToString(x.shape()), ")"});
  }
}

inline void CheckContiguous(const char* name, const TensorView& x) {
  if (!x.IsContiguous()) {
    detail::Refuse("ValueError",
                   {name, " must be contiguous (got shape ", ToString(x.shape()), ", strides ",
                    ToString(detail::StridesOf(x)), "): pass a contiguous copy of it"});
  }
}

// `words` is the shape as the source says it: "m, k". -1 takes any size.
inline void CheckShape(const char* name, const TensorView& x, const char* words,
                       std::initializer_list<int64_t> shape) {
  bool same = x.ndim() == static_cast<int32_t>(shape.size());
  for (int i = 0; same && i < x.ndim(); ++i) {
    const int64_t size = shape.begin()[i];
    same = size == -1 || size == x.shape().data()[i];
  }
  if (!same) {
    detail::Refuse("ValueError", {name, " must have shape (", words, "), ",
                                  ToString(ShapeView(shape.begin(), shape.size())), " (got ",
                                  ToString(x.shape()), ")"});
  }
}

inline void CheckNotEmpty(const char* name, const TensorView& x) {
  if (x.numel() == 0) {
    detail::Refuse("ValueError", {name, " must have elements (got shape ", ToString(x.shape()),
                                  "): skip the call for an empty one"});
  }
}

inline void CheckAligned(const char* name, const TensorView& x, uint64_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(x.data_ptr()) + x.byte_offset();
  if (bytes == 0 || address % bytes != 0) {
    const auto left = static_cast<int64_t>(bytes == 0 ? 0 : address % bytes);
    detail::Refuse("ValueError", {name, " must be aligned to ",
                                  culaunch::detail::NumberText(static_cast<int64_t>(bytes)),
                                  " bytes (its first element is at an address that leaves ",
                                  culaunch::detail::NumberText(left),
                                  "): pass a copy of it, or a view that begins at a multiple"});
  }
}

}  // namespace ffi

CULAUNCH_NAMESPACE_END

// Checks by the name that the argument has in the function.
#define CULAUNCH_CHECK_DEVICE(x) ::culaunch::ffi::CheckDevice(#x, x)
#define CULAUNCH_CHECK_SAME_DEVICE(x, y) ::culaunch::ffi::CheckSameDevice(#x, x, #y, y)
#define CULAUNCH_CHECK_SAME_DTYPE(x, y) ::culaunch::ffi::CheckSameDtype(#x, x, #y, y)
#define CULAUNCH_CHECK_DIMENSIONS(x, n) ::culaunch::ffi::CheckDimensions(#x, x, n)
#define CULAUNCH_CHECK_SAME_SHAPE(x, y) ::culaunch::ffi::CheckSameShape(#x, x, #y, y)
#define CULAUNCH_CHECK_CONTIGUOUS(x) ::culaunch::ffi::CheckContiguous(#x, x)
#define CULAUNCH_CHECK_SHAPE(x, ...) ::culaunch::ffi::CheckShape(#x, x, #__VA_ARGS__, {__VA_ARGS__})
#define CULAUNCH_CHECK_NOT_EMPTY(x) ::culaunch::ffi::CheckNotEmpty(#x, x)
#define CULAUNCH_CHECK_ALIGNED(x, bytes) ::culaunch::ffi::CheckAligned(#x, x, bytes)

// One of these element types: kFloat32, kFloat16, ...
#define CULAUNCH_CHECK_DTYPE(x, ...)                                 \
  ([&](const ::tvm::ffi::TensorView& culaunch_tensor) {              \
    using namespace ::culaunch::ffi::dtypes;                         \
    ::culaunch::ffi::CheckDtype(#x, culaunch_tensor, {__VA_ARGS__}); \
  }(x))
