// What a kernel library over Apache TVM-FFI needs: checks of its tensors with messages that a
// caller can act on, the device and stream of a tensor, outputs, and the choice of a kernel by
// element type. Needs the headers of apache-tvm-ffi; culaunch.h does not include this file.
#pragma once

#include <cuda.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "culaunch.h"

CULAUNCH_NAMESPACE_BEGIN

namespace ffi {

using ::tvm::ffi::ShapeView;
using ::tvm::ffi::Tensor;
using ::tvm::ffi::TensorView;

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

// ---- words for messages

inline std::string ToString(DLDataType dtype) {
  return std::string(::tvm::ffi::DLDataTypeToString(dtype));
}

inline std::string ToString(DLDevice device) {
  const char* kind = device.device_type == ::kDLCPU           ? "cpu"
                     : device.device_type == ::kDLCUDA        ? "cuda"
                     : device.device_type == ::kDLCUDAHost    ? "cuda_host"
                     : device.device_type == ::kDLCUDAManaged ? "cuda_managed"
                                                              : nullptr;
  return (kind != nullptr ? kind : "device type " + std::to_string(device.device_type)) + ":" +
         std::to_string(device.device_id);
}

inline std::string ToString(ShapeView shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i != 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

inline std::string ToString(std::initializer_list<DLDataType> dtypes) {
  std::string text;
  for (const DLDataType dtype : dtypes) text += (text.empty() ? "" : ", ") + ToString(dtype);
  return text;
}

// ---- checks: each names the argument, the rule and the value

// The tensor is in memory that the driver in use can reach from a kernel.
inline void CheckDevice(const char* name, const TensorView& x) {
  const Driver& driver = Driver::Get();
  if (!driver.IsDeviceMemory(static_cast<int>(x.device().device_type))) {
    TVM_FFI_THROW(ValueError) << name << " must be in memory of the driver \"" << driver.name()
                              << "\" (got " << ToString(x.device()) << "): move it to "
                              << (driver.IsDeviceMemory(::kDLCPU) ? "the CPU" : "a GPU")
                              << " first";
  }
  if (x.device().device_id < 0 || x.device().device_id >= driver.device_count()) {
    TVM_FFI_THROW(ValueError) << name << " is on " << ToString(x.device())
                              << ", but the driver knows " << driver.device_count() << " device(s)";
  }
}

inline void CheckSameDevice(const char* name, const TensorView& x, const char* other_name,
                            const TensorView& other) {
  if (x.device().device_type != other.device().device_type ||
      x.device().device_id != other.device().device_id) {
    TVM_FFI_THROW(ValueError) << name << " must be on the device of " << other_name << ", "
                              << ToString(other.device()) << " (got " << ToString(x.device())
                              << ")";
  }
}

inline void CheckDtype(const char* name, const TensorView& x,
                       std::initializer_list<DLDataType> allowed) {
  for (const DLDataType dtype : allowed) {
    if (x.dtype() == dtype) return;
  }
  TVM_FFI_THROW(TypeError) << "the element type of " << name << " must be "
                           << (allowed.size() > 1 ? "one of " : "") << ToString(allowed) << " (got "
                           << ToString(x.dtype()) << ")";
}

inline void CheckSameDtype(const char* name, const TensorView& x, const char* other_name,
                           const TensorView& other) {
  if (!(x.dtype() == other.dtype())) {
    TVM_FFI_THROW(TypeError) << "the element type of " << name << " must be that of " << other_name
                             << ", " << ToString(other.dtype()) << " (got " << ToString(x.dtype())
                             << ")";
  }
}

inline void CheckDimensions(const char* name, const TensorView& x, int dimensions) {
  if (x.ndim() != dimensions) {
    TVM_FFI_THROW(ValueError) << name << " must have " << dimensions << " dimension(s) (got "
                              << x.ndim() << ", shape " << ToString(x.shape()) << ")";
  }
}

inline void CheckSameShape(const char* name, const TensorView& x, const char* other_name,
                           const TensorView& other) {
  bool same = x.ndim() == other.ndim();
  for (int i = 0; same && i < x.ndim(); ++i) same = x.size(i) == other.size(i);
  if (!same) {
    TVM_FFI_THROW(ValueError) << name << " must have the shape of " << other_name << ", "
                              << ToString(other.shape()) << " (got " << ToString(x.shape()) << ")";
  }
}

inline void CheckContiguous(const char* name, const TensorView& x) {
  if (!x.IsContiguous()) {
    TVM_FFI_THROW(ValueError) << name << " must be contiguous (got shape " << ToString(x.shape())
                              << ", strides " << ToString(x.strides())
                              << "): pass a contiguous copy of it";
  }
}

// ---- from a tensor to a launch

namespace detail {

// A driver that checks addresses (the emulator) is told of the tensors of a launch. Those noted in
// an exported function serve all launches in it, and none after it.
class Notes {
 public:
  Notes() { ++State().depth; }
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  ~Notes() {
    Call& call = State();
    if (--call.depth != 0 || !call.has_notes) return;
    call.has_notes = false;
    Driver::Get().note_array(nullptr, 0, kNoteLaunch);
  }

  static void Add(const TensorView& x) {
    const Driver& driver = Driver::Get();
    if (driver.note_array == nullptr) return;
    int64_t first = 0;
    int64_t last = 0;
    for (int i = 0; i < x.ndim(); ++i) {
      if (x.size(i) == 0) return;
      (x.stride(i) < 0 ? first : last) += (x.size(i) - 1) * x.stride(i);
    }
    Call& call = State();
    if (call.depth != 0 && !call.has_notes) {
      driver.note_array(nullptr, 0, kNoteFunction);
      call.has_notes = true;
    }
    const int64_t bytes = (x.dtype().bits * x.dtype().lanes + 7) / 8;
    const char* data = static_cast<char*>(x.data_ptr()) + x.byte_offset();
    driver.note_array(data + first * bytes, static_cast<size_t>((last - first + 1) * bytes),
                      kNoteArray);
  }

 private:
  struct Call {
    int depth = 0;
    bool has_notes = false;
  };

  static Call& State() {
    static thread_local Call call;
    return call;
  }
};

}  // namespace detail

// The first element, for a launch; TensorView::data_ptr() leaves byte_offset out.
inline void* Data(const TensorView& x) {
  detail::Notes::Add(x);
  return static_cast<char*>(x.data_ptr()) + x.byte_offset();
}

// The stream that the caller's framework works on for the tensor's device, and that device: a
// launch on it goes there, whatever device is current. (`.handle` alone, of a default stream, means
// the current device's.) Pinned memory is of no device.
inline Stream CurrentStream(const TensorView& x) {
  const DLDevice device = x.device();
  return {static_cast<CUstream>(
              TVMFFIEnvGetStream(static_cast<int32_t>(device.device_type), device.device_id)),
          device.device_type == ::kDLCUDAHost ? -1 : device.device_id};
}

// Makes the tensor's device current for a scope: for calls of the driver other than launches.
class TensorGuard {
 public:
  explicit TensorGuard(const TensorView& x) : guard_(Driver::Get(), x.device().device_id) {
    Driver::Get().Check(guard_.code(),
                        "making device " + std::to_string(x.device().device_id) + " current");
  }

 private:
  DeviceGuard guard_;
};

// A new tensor from the allocator of the caller's framework: to Python it is that framework's.
inline Tensor Empty(ShapeView shape, DLDataType dtype, DLDevice device) {
  if (TVMFFIEnvGetDLPackManagedTensorAllocator() == nullptr) {
    TVM_FFI_THROW(RuntimeError) << "the arrays of this call come from a framework that offers no "
                                   "allocator to libraries (NumPy has none): pass the output to a "
                                   "function that takes it, or pass PyTorch tensors or culaunch's "
                                   "arrays (culaunch.to_device)";
  }
  return Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, shape, dtype, device);
}

inline Tensor EmptyLike(const TensorView& x) { return Empty(x.shape(), x.dtype(), x.device()); }

// The kernels of one operation, one for each element type, named prefix + type: "scale_float32".
class KernelsByDtype {
 public:
  KernelsByDtype(const Module& module, std::string prefix, std::initializer_list<DLDataType> dtypes)
      : dtypes_(dtypes) {
    for (const DLDataType dtype : dtypes) {
      kernels_.push_back(module.GetKernel(prefix + ToString(dtype)));
    }
  }

  const Kernel& Select(const char* name, const TensorView& x) const {
    for (size_t i = 0; i < dtypes_.size(); ++i) {
      if (x.dtype() == dtypes_[i]) return kernels_[i];
    }
    std::string allowed;
    for (const DLDataType dtype : dtypes_) {
      allowed += (allowed.empty() ? "" : ", ") + ToString(dtype);
    }
    TVM_FFI_THROW(TypeError) << "the element type of " << name << " must be one of " << allowed
                             << " (got " << ToString(x.dtype()) << ")";
    TVM_FFI_UNREACHABLE();
  }

 private:
  std::vector<DLDataType> dtypes_;
  std::vector<Kernel> kernels_;
};

// Wraps a function for export: what culaunch throws arrives as the caller's ValueError or
// RuntimeError, with its whole message.
template <auto function, class Type = decltype(function)>
struct Exported;

template <auto function, class Result, class... Arguments>
struct Exported<function, Result (*)(Arguments...) noexcept>
    : Exported<function, Result (*)(Arguments...)> {};

template <auto function, class Result, class... Arguments>
struct Exported<function, Result (*)(Arguments...)> {
  static Result Call(Arguments... arguments) {
    const detail::Notes notes;
    try {
      return function(std::forward<Arguments>(arguments)...);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kCall) TVM_FFI_THROW(ValueError) << error.what();
      TVM_FFI_THROW(RuntimeError) << error.what();
    }
    TVM_FFI_UNREACHABLE();
  }
};

}  // namespace ffi

CULAUNCH_NAMESPACE_END

// Checks by the name that the argument has in the function.
#define CULAUNCH_CHECK_DEVICE(x) ::culaunch::ffi::CheckDevice(#x, x)
#define CULAUNCH_CHECK_SAME_DEVICE(x, y) ::culaunch::ffi::CheckSameDevice(#x, x, #y, y)
#define CULAUNCH_CHECK_DTYPE(x, ...) ::culaunch::ffi::CheckDtype(#x, x, {__VA_ARGS__})
#define CULAUNCH_CHECK_SAME_DTYPE(x, y) ::culaunch::ffi::CheckSameDtype(#x, x, #y, y)
#define CULAUNCH_CHECK_DIMENSIONS(x, n) ::culaunch::ffi::CheckDimensions(#x, x, n)
#define CULAUNCH_CHECK_SAME_SHAPE(x, y) ::culaunch::ffi::CheckSameShape(#x, x, #y, y)
#define CULAUNCH_CHECK_CONTIGUOUS(x) ::culaunch::ffi::CheckContiguous(#x, x)

// The kernel `prefix` + element type of tensor x, in the embedded image `name`; the further
// arguments are the element types that there are kernels for.
#define CULAUNCH_DISPATCH_DTYPE(name, prefix, x, ...)                                          \
  ([](const ::tvm::ffi::TensorView& tensor) -> const ::culaunch::Kernel& {                     \
    static const ::culaunch::ffi::KernelsByDtype kernels(CULAUNCH_GET_MODULE(name), "" prefix, \
                                                         {__VA_ARGS__});                       \
    return kernels.Select(#x, tensor);                                                         \
  }(x))

// Export a function to every framework that speaks TVM-FFI. (Its macro leaves parameters unused.)
#define CULAUNCH_EXPORT(name, function)                                                   \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wunused-parameter\"") \
      TVM_FFI_DLL_EXPORT_TYPED_FUNC(name, ::culaunch::ffi::Exported<(function)>::Call)    \
          _Pragma("GCC diagnostic pop") static_assert(true, "a semicolon ends the macro")
