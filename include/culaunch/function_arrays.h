// Arrays of an exported function: the requirements on its arguments, and its allocations.
#pragma once

#include <cuda.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "driver.h"
#include "function_errors.h"
#include "guard.h"
#include "tvm_ffi.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace function {

using ::tvm::ffi::ShapeView;
using ::tvm::ffi::Tensor;
using ::tvm::ffi::TensorView;
using Sizes = std::initializer_list<int64_t>;

// In elements. A tensor of C order may come without strides, which TensorView refuses to return.
inline int64_t Stride(const TensorView& x, int axis) {
  const auto* tensor = ::tvm::ffi::AnyView(x).cast<DLTensor*>();
  if (tensor->strides != nullptr) return tensor->strides[axis];
  int64_t dense = 1;
  for (int i = x.ndim() - 1; i > axis; --i) dense *= x.size(i);
  return dense;
}

// The address, for checks whether arrays share memory.
inline int64_t Place(const TensorView& x) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(x.data_ptr()) + x.byte_offset());
}

// For guards on alignment: the address modulo 256.
inline int64_t Alignment(const TensorView& x) {
  return static_cast<int64_t>(static_cast<uint64_t>(Place(x)) % 256);
}

// So many bytes after an address.
inline void* At(void* data, int64_t bytes) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) + static_cast<uintptr_t>(bytes));
}

// An address for an array that is still to be allocated, if only its layout counts.
inline void* Somewhere() { return reinterpret_cast<void*>(uintptr_t{1} << 20); }

// An array that a function allocates, or gets for its result.
class Array {
 public:
  explicit Array(Tensor tensor) : owner_(std::move(tensor)), view_(*owner_) {}
  explicit Array(const TensorView& given) : view_(given) {}

  const TensorView& view() const { return view_; }
  void* data() const { return ffi::Data(view_); }
  // The array for the caller; empty if it is the caller's own.
  ::tvm::ffi::Any result() const {
    return owner_.has_value() ? ::tvm::ffi::Any(*owner_) : ::tvm::ffi::Any();
  }
  const Tensor& owner() const { return *owner_; }

 private:
  std::optional<Tensor> owner_;
  TensorView view_;
};

namespace detail {

// Memory of the driver, if the caller's framework offers no allocator.
struct DriverMemory {
  void AllocData(DLTensor* tensor) const {
    Driver& driver = Driver::Get();
    const size_t bytes = ::tvm::ffi::GetDataSize(*tensor);
    const DeviceGuard guard(driver, tensor->device.device_id);
    driver.Check(guard.code(), "making the device current");
    CUdeviceptr address = 0;
    driver.Check(driver.cuMemAlloc(&address, bytes == 0 ? 1 : bytes), "cuMemAlloc");
    tensor->data = reinterpret_cast<void*>(address);
  }
  void FreeData(DLTensor* tensor) const {
    // The driver waits for the launches that use the memory.
    Driver& driver = Driver::Get();
    const DeviceGuard guard(driver, tensor->device.device_id);
    driver.cuMemFree(reinterpret_cast<CUdeviceptr>(tensor->data));
  }
};

// A view keeps its base alive.
struct ViewedMemory {
  Tensor owner;
  void* data;

  void AllocData(DLTensor* tensor) const { tensor->data = data; }
  void FreeData(DLTensor*) const {}
};

}  // namespace detail

// Raise unless every element of a view lies in the memory of its array: a program may come from a
// library that nobody here has written.
inline void RequireInside(const Array& base, int64_t offset, DLDataType dtype, Sizes shape,
                          Sizes strides) {
  const int64_t item = int64_t{dtype.bits} * dtype.lanes / 8;
  int64_t low = offset;
  int64_t high = 0;
  bool fits = !__builtin_add_overflow(offset, item, &high);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape.begin()[i] == 0) return;
    int64_t reach = 0;
    fits = fits && !__builtin_mul_overflow(shape.begin()[i] - 1, strides.begin()[i], &reach) &&
           !__builtin_mul_overflow(reach, item, &reach);
    int64_t& end = reach < 0 ? low : high;
    fits = fits && !__builtin_add_overflow(end, reach, &end);
  }
  const DLDataType own = base.view().dtype();
  const int64_t bytes = base.view().shape().Product() * (int64_t{own.bits} * own.lanes / 8);
  if (!fits || low < 0 || high > bytes) {
    Raise("ValueError", "a view reaches outside of the memory of its array");
  }
}

// A part of an array that this function allocated, as a tensor of its own. Strides in elements.
inline Tensor View(const Array& base, int64_t offset, DLDataType dtype, Sizes shape,
                   Sizes strides) {
  RequireInside(base, offset, dtype, shape, strides);
  return Tensor::FromNDAllocStrided(detail::ViewedMemory{base.owner(), At(base.data(), offset)},
                                    ShapeView(shape.begin(), shape.size()),
                                    ShapeView(strides.begin(), strides.size()), dtype,
                                    base.view().device());
}

}  // namespace function

CULAUNCH_NAMESPACE_END
