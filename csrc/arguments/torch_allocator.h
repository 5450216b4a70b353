// Tensors made by torch's stable C interface, which gives the tensor itself: its exchange function
// allocates a description as well, and makes a second tensor over the first one's memory.
#pragma once

#include <cstdint>

#include "formats/dlpack.h"
#include "python/python.h"

struct TorchAllocator {
  // Of the stable interface; they return 0 for success.
  int32_t (*empty)(int64_t ndim, const int64_t* shape, const int64_t* strides, int32_t dtype,
                   int32_t device_type, int32_t device_index, void** tensor);
  int32_t (*data)(void* tensor, void** data);
  int32_t (*free)(void* tensor);
  // THPVariable_Wrap of its Python half: a new reference to the object of a tensor.
  PyObject* (*wrap)(const void* tensor);

  // Make a dense tensor; null, without an error, where torch's exchange function is to be asked,
  // which says what is wrong.
  void* Make(const DLTensor& like, char** address) const;
};

// Of torch as it is loaded, looked for once; null where it lacks one of these functions.
const TorchAllocator* FindTorchAllocator();
