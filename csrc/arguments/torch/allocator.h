// Tensors made by torch's stable C interface, which returns the tensor itself. torch's exchange
// function also allocates a description, and makes a second tensor over the first one's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "formats/dlpack.h"
#include "python/python.h"

// The parameters and results of the function at the end of torch's dispatcher, by its C++ name. The
// name contains the types of all parameters: a torch that changes one has no function with this
// name.
namespace torch_direct {

struct Sizes {  // c10::ArrayRef<int64_t>
  const int64_t* data;
  size_t count;
};
struct Device {  // c10::Device
  int8_t type;
  int8_t index;
};
// at::Tensor. It is not a trivial type: a function returns it in memory that its caller provides.
struct Tensor {
  explicit Tensor(void* of) : implementation(of) {}
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() {}  // NOLINT: a type with a default one is returned in a register; its owner frees it

  void* implementation;
};
using Empty = Tensor (*)(Sizes shape, Sizes strides, std::optional<int8_t> dtype,
                         std::optional<int8_t> layout, std::optional<Device> device,
                         std::optional<bool> is_pinned);

}  // namespace torch_direct

struct TorchAllocator {
  // From the stable interface; they return 0 for success.
  int32_t (*empty)(int64_t ndim, const int64_t* shape, const int64_t* strides, int32_t dtype,
                   int32_t device_type, int32_t device_index, void** tensor);
  int32_t (*data)(void* tensor, void** data);
  int32_t (*free)(void* tensor);
  // at::native::empty_strided_cuda, which `empty` calls on a GPU if no mode intercepts the
  // operation; null if this torch has none.
  torch_direct::Empty empty_on_gpu;
  // THPVariable_Wrap of its Python half: a new reference to the object of a tensor.
  PyObject* (*wrap)(const void* tensor);

  // Make a dense tensor. Null without an error means: call torch's exchange function, which reports
  // the problem.
  void* Make(const DLTensor& like, char** address) const;

 private:
  void* MakeOnGpu(const DLTensor& like, const int64_t* strides, int32_t dtype) const;
};

// Found once in the loaded torch; null if it lacks one of these functions.
const TorchAllocator* FindTorchAllocator();
