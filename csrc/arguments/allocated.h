// Arrays that a framework has allocated and that have no Python object yet.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

// Null or one of them. No constructor: a call does not pay for what it may not need.
struct Allocated {
  DLManagedTensorVersioned* managed;
  void* tensor;  // torch's handle

  bool is_made() const { return managed != nullptr || tensor != nullptr; }
};

// Allocate a dense array as the framework with the exchange API `api` does; `like` has its shape,
// device and element type. Returns its address; null with a Python error set, or where the array is
// empty.
char* Allocate(const DLPackExchangeAPI* api, const DLTensor& like, Allocated* allocated);

// Make the Python object of it, which has the memory from then on. Of torch it is the tensor that
// was allocated, and not another one over its memory: CUDA graphs of torch.compile want memory that
// their allocator frees itself. Null with a Python error set.
PyObject* TakeObject(const DLPackExchangeAPI* api, Allocated* allocated);

void Free(Allocated* allocated);
