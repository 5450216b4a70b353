// One call of an exported function: its device and stream, its allocations and launches there.
#pragma once

#include <cuda.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/tensor.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "argument.h"
#include "driver.h"
#include "explain.h"
#include "function_arguments.h"
#include "function_arrays.h"
#include "function_errors.h"
#include "guard.h"
#include "kernel.h"
#include "launch_config.h"
#include "tensor_notes.h"
#include "tvm_ffi.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace function {

// An array of a call, by the name that the body gives it.
struct NamedArray {
  const char* name;
  TensorView view;
};

// The bytes of a structure, and where its fields are written. Aligned as any structure may be.
template <size_t size>
struct alignas(64) Bytes {
  unsigned char bytes[size];

  template <class Field>
  void Set(size_t offset, const Field& field) {
    constexpr size_t kSize = ::culaunch::detail::TypeOfArgument<Field>().size;
    std::memcpy(bytes + offset, ::culaunch::detail::AddressOfArgument(field), kSize);
  }
};

// A pointer parameter that gets None.
constexpr void* kNull = nullptr;

inline uint32_t Dimension(int64_t size) { return static_cast<uint32_t>(size); }
inline Dim3 Dims(int64_t x, int64_t y = 1, int64_t z = 1) {
  return Dim3(Dimension(x), Dimension(y), Dimension(z));
}

class Call {
 public:
  // All arrays of a call are on one device, in memory of the driver; without any it is the current
  // device and its default stream. `outputs` are the caller's, for the results.
  Call(const char* name, std::initializer_list<NamedArray> arrays,
       std::initializer_list<TensorView> outputs = {})
      : name_(name), driver_(Driver::Get()), outputs_(outputs) {
    const NamedArray* first = nullptr;
    for (const NamedArray& one : arrays) {
      ffi::CheckDevice(one.name, one.view);
      if (first == nullptr) {
        first = &one;
      } else {
        ffi::CheckSameDevice(one.name, one.view, first->name, first->view);
      }
    }
    if (first != nullptr) {
      device_ = first->view.device();
      stream_ = ffi::CurrentStream(first->view);
    } else {
      device_ = {static_cast<DLDeviceType>(driver_.device_types().front()), CurrentDevice(driver_)};
      stream_ = {static_cast<CUstream>(TVMFFIEnvGetStream(static_cast<int32_t>(device_.device_type),
                                                          device_.device_id)),
                 device_.device_id};
    }
  }

  int64_t ordinal() const { return device_.device_id; }
  int64_t Attribute(int attribute) const {
    return driver_.Attribute(static_cast<CUdevice_attribute>(attribute), device_.device_id);
  }

  // A dense array: the caller's output `index` if there are outputs, else a new one (index -1:
  // always new). It comes from the allocator of the caller's framework, or else from the driver.
  Array Allocate(DLDataType dtype, Sizes shape, int index, const char* where) const {
    for (const int64_t size : shape) {
      if (size >= 0) continue;
      Raise("ValueError", std::string("at ") + where + ": a dimension of the shape " +
                              ffi::ToString(ShapeView(shape.begin(), shape.size())) +
                              " is negative");
    }
    const ShapeView sizes(shape.begin(), shape.size());
    if (index >= 0 && !outputs_.empty()) return Given(dtype, sizes, index);
    if (TVMFFIEnvGetDLPackManagedTensorAllocator() == nullptr) {
      return Array(Tensor::FromNDAlloc(detail::DriverMemory(), sizes, dtype, device_));
    }
    return Array(Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, sizes, dtype, device_));
  }

  // Fill an array with zeros, in the order of the stream.
  void Zero(const Array& array) const {
    const size_t bytes =
        ::tvm::ffi::GetDataSize(array.view().shape().Product(), array.view().dtype());
    if (bytes == 0) return;
    void* data = array.data();
    const DeviceGuard guard(driver_, device_.device_id);
    driver_.Check(guard.code(), "making the device current");
    if (device_.device_type == ::kDLCPU) {  // an emulated device's memory is the host's
      driver_.Check(driver_.cuStreamSynchronize(stream_.handle), "cuStreamSynchronize");
      std::memset(data, 0, bytes);
      return;
    }
    driver_.Check(
        driver_.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(data), 0, bytes, stream_.handle),
        "filling " + std::to_string(bytes) + " bytes of memory");
  }

  // Launch on the call's device and stream. Each argument has the size of the kernel's parameter.
  template <class... Parameters>
  void Launch(const Kernel& kernel, LaunchConfig config, const char* where,
              const Parameters&... parameters) const {
    config.stream = stream_;
    void* pointers[] = {::culaunch::detail::AddressOfArgument(parameters)..., nullptr};
    const CUresult code = kernel.Launch(pointers, config);
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) RaiseLaunch(kernel, config, where, code);
  }

  // Raise if the driver would refuse a launch: for those after the first, before that one.
  void Require(const Kernel& kernel, const LaunchConfig& config, const char* where) const {
    const DriverLaunchConfig own(config);
    KernelState& state = kernel.state();
    const int ordinal = device_.device_id;
    CUresult code = state.MakeReady(own.get(), ordinal);
    const int most = code == CUDA_SUCCESS ? state.MaxThreads(ordinal) : 0;
    if (most != 0 && config.block.Volume() > static_cast<uint64_t>(most)) {
      code = CUDA_ERROR_INVALID_VALUE;
    }
    if (code == CUDA_SUCCESS && own.get().numAttrs != 0) {
      code = RefusalOf(driver_, kernel.handle(), own.get(), ordinal);
    }
    if (code == CUDA_SUCCESS) return;
    LaunchConfig there = config;
    there.stream = stream_;
    RaiseLaunch(kernel, there, where, code);
  }

  // A tensor map over an array. Sizes, strides (in bytes, without the last dimension), box and
  // steps follow the order of its dimensions.
  CUtensorMap TensorMap(const std::array<int, 5>& numbers, void* data, Sizes sizes, Sizes strides,
                        Sizes box, Sizes steps, const char* where) const {
    CUtensorMap map;
    const auto words = [where](Sizes given, auto* reversed) {
      for (size_t i = 0; i < given.size(); ++i) {  // the driver has the fastest dimension first
        const int64_t value = given.begin()[given.size() - 1 - i];
        using Word = std::remove_reference_t<decltype(*reversed)>;
        if (value < 0 || static_cast<uint64_t>(value) > std::numeric_limits<Word>::max()) {
          Raise("ValueError", Text("at ", where, ": a tensor map has no size ", value));
        }
        reversed[i] = static_cast<Word>(value);
      }
    };
    cuuint64_t extents[5] = {};
    cuuint64_t bytes[5] = {};
    cuuint32_t boxes[5] = {};
    cuuint32_t skips[5] = {};
    words(sizes, extents);
    words(strides, bytes);
    words(box, boxes);
    words(steps, skips);
    driver_.Check(driver_.cuTensorMapEncodeTiled == nullptr
                      ? CUDA_ERROR_NOT_SUPPORTED
                      : driver_.cuTensorMapEncodeTiled(
                            &map, static_cast<CUtensorMapDataType>(numbers[0]),
                            static_cast<cuuint32_t>(sizes.size()), data, extents, bytes, boxes,
                            skips, static_cast<CUtensorMapInterleave>(numbers[1]),
                            static_cast<CUtensorMapSwizzle>(numbers[2]),
                            static_cast<CUtensorMapL2promotion>(numbers[3]),
                            static_cast<CUtensorMapFloatOOBfill>(numbers[4])),
                  std::string("at ") + where + ": encoding a tensor map");
    return map;
  }

 private:
  // The caller's own array, which must equal the one that this function would have allocated.
  Array Given(DLDataType dtype, ShapeView shape, int index) const {
    const TensorView& given = outputs_[static_cast<size_t>(index)];
    const std::string name = "output " + std::to_string(index) + " of " + name_;
    ffi::CheckDevice(name.c_str(), given);
    ffi::CheckDtype(name.c_str(), given, {dtype});
    bool is_same = given.ndim() == static_cast<int>(shape.size());
    for (size_t i = 0; is_same && i < shape.size(); ++i) is_same = given.shape()[i] == shape[i];
    if (!is_same) {
      Raise("ValueError", name + " must have the shape " + ffi::ToString(shape) + " (got " +
                              ffi::ToString(given.shape()) + ")");
    }
    ffi::CheckContiguous(name.c_str(), given);
    if (given.device().device_id != device_.device_id) {
      Raise("ValueError", name + " must be on the device of the arguments, " +
                              ffi::ToString(device_) + " (got " + ffi::ToString(given.device()) +
                              ")");
    }
    if (Alignment(given) % 16 != 0 && given.shape().Product() != 0) {
      Raise("ValueError", name + " must be aligned to 16 bytes");
    }
    return Array(given);
  }

  [[noreturn]] static void RaiseLaunch(const Kernel& kernel, const LaunchConfig& config,
                                       const char* where, CUresult code) {
    try {
      kernel.Throw(code, config);
    } catch (const Error& error) {
      throw Error(error.kind(), error.code(), error.name(),
                  std::string("at ") + where + ": " + error.what());
    }
  }

  const char* name_;
  Driver& driver_;
  std::vector<TensorView> outputs_;
  DLDevice device_{};
  Stream stream_;
};

// Call a function for export: what culaunch throws arrives as the caller's error.
inline void Run(void (*function)(const Arguments&, Any*), const Arguments& arguments, Any* result) {
  const culaunch::detail::TensorNotes notes;
  try {
    function(arguments, result);
  } catch (const Error& error) {
    Raise(error.kind() == ErrorKind::kType   ? "TypeError"
          : error.kind() == ErrorKind::kCall ? "ValueError"
                                             : "RuntimeError",
          error.what());
  }
}

}  // namespace function

CULAUNCH_NAMESPACE_END
