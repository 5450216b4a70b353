// Arrays that a framework has allocated and that have no Python object yet.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

// One such array, or null. There is no constructor, because a call must not pay for a member that
// it may not need.
struct Allocated {
  DLManagedTensorVersioned* managed;
  void* tensor;  // torch's handle

  bool is_made() const { return managed != nullptr || tensor != nullptr; }
};

// Allocate a dense array as the framework with the exchange API `api` does; `like` has its shape,
// device and element type. Returns its address; null with a Python error set, or if the array is
// empty.
char* Allocate(const DLPackExchangeAPI* api, const DLTensor& like, Allocated* allocated);

// Make its Python object, which owns the memory from then on. For torch, this is the allocated
// tensor itself, and not a second tensor over its memory. CUDA graphs of torch.compile need memory
// that their allocator frees itself. Null with a Python error set.
PyObject* TakeObject(const DLPackExchangeAPI* api, Allocated* allocated);

void Free(Allocated* allocated);
