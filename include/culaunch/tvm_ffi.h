// Tools for a kernel library over Apache TVM-FFI: checks of its tensors with actionable messages
// (tvm_ffi_checks.h), a tensor's device and stream, and outputs. They also select a kernel by
// element type. Needs the headers of apache-tvm-ffi; culaunch.h does not include this file.
#pragma once

#include <cuda.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "array_argument.h"
#include "culaunch.h"
#include "tensor_notes.h"
#include "tvm_ffi_checks.h"
#include "tvm_ffi_export.h"

CULAUNCH_NAMESPACE_BEGIN

namespace ffi {

namespace detail {

inline culaunch::detail::TensorMemory MemoryOf(const TensorView& x) {
  return {static_cast<const char*>(x.data_ptr()) + x.byte_offset(), x.ndim(), x.shape().data(),
          StridesOf(x).data(), (x.dtype().bits * x.dtype().lanes + 7) / 8};
}

CULAUNCH_COLD CULAUNCH_SEPARATE inline void Note(const Driver& driver, const TensorView& x) {
  culaunch::detail::TensorNotes::Add(driver, MemoryOf(x));
}

CULAUNCH_COLD CULAUNCH_SEPARATE inline void MarkMissing(const TensorView& x, ArrayArgument* array) {
  if (x.numel() != 0) array->MarkNull();
}

inline ArrayArgument Argument(const TensorView& x) {
  if (const Driver* driver = Driver::ThatTakesNotes()) Note(*driver, x);
  ElementType type;
  type.code = x.dtype().code;
  type.bits = x.dtype().bits;
  type.lanes = x.dtype().lanes;
  const DLDevice device = x.device();
  ArrayArgument array(static_cast<char*>(x.data_ptr()) + x.byte_offset(), type,
                      static_cast<int>(device.device_type), device.device_id);
  if (CULAUNCH_UNLIKELY(x.data_ptr() == nullptr)) MarkMissing(x, &array);
  return array;
}

}  // namespace detail

// A tensor, for a launch: the address of its first element, and the facts that the launch compares
// with the parameter. These are its element type, its device, and whether it has memory.
// (TensorView::data_ptr() ignores byte_offset and has none of these facts.)
inline ArrayArgument Data(const TensorView& x) { return detail::Argument(x); }

// The same for a kernel that needs a number of elements: a tensor that spans fewer is an error.
inline ArrayArgument Data(const TensorView& x, int64_t least) {
  ArrayArgument array = detail::Argument(x);
  array.SetExtent(culaunch::detail::SpanOf(detail::MemoryOf(x)), least);
  return array;
}

// The stream and the device that the caller's framework uses for the tensor. A launch on it goes to
// that device, whatever device is current. (A bare `.handle` of a default stream means the current
// device's stream.) Pinned memory belongs to no device.
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

// A new tensor from the allocator of the caller's framework. In Python it is that framework's
// tensor.
inline Tensor Empty(ShapeView shape, DLDataType dtype, DLDevice device) {
  if (TVMFFIEnvGetDLPackManagedTensorAllocator() == nullptr) {
    Throw("RuntimeError",
          "the arrays of this call come from a framework that offers no allocator to libraries "
          "(NumPy has none). Pass the output to a function that takes it, or pass PyTorch tensors "
          "or culaunch's arrays (culaunch.to_device)");
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
    detail::Refuse("TypeError", {"the element type of ", name, " must be one of ", allowed,
                                 " (got ", ToString(x.dtype()), ")"});
  }

 private:
  std::vector<DLDataType> dtypes_;
  std::vector<Kernel> kernels_;
};

}  // namespace ffi

CULAUNCH_NAMESPACE_END

// The kernel `prefix` + element type of tensor x, in the embedded image `name`; the further
// arguments are the element types that there are kernels for.
#define CULAUNCH_DISPATCH_DTYPE(name, prefix, x, ...)                                          \
  ([](const ::tvm::ffi::TensorView& tensor) -> const ::culaunch::Kernel& {                     \
    using namespace ::culaunch::ffi::dtypes;                                                   \
    static const ::culaunch::ffi::KernelsByDtype kernels(CULAUNCH_GET_MODULE(name), "" prefix, \
                                                         {__VA_ARGS__});                       \
    return kernels.Select(#x, tensor);                                                         \
  }(x))
