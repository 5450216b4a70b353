#include "arguments/allocated.h"

#include <cstring>
#include <utility>

#include "arguments/torch_allocator.h"
#include "arguments/torch_tensor.h"

namespace {

void SetError(void*, const char* kind, const char* message) {
  if (PyErr_Occurred() != nullptr) return;
  if (std::strcmp(kind, "RuntimeError") == 0) return PyErr_SetString(PyExc_RuntimeError, message);
  PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

}  // namespace

char* Allocate(const DLPackExchangeAPI* api, const DLTensor& like, Allocated* allocated) {
  *allocated = {nullptr, nullptr};
  if (api == g_torch_bits.api) {
    const TorchAllocator* torch = FindTorchAllocator();
    char* address = nullptr;
    if (torch != nullptr) allocated->tensor = torch->Make(like, &address);
    if (allocated->tensor != nullptr) return address;
  }
  DLTensor prototype = like;
  if (api->managed_tensor_allocator(&prototype, &allocated->managed, nullptr, SetError) != 0) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, "allocation failed");
    allocated->managed = nullptr;
    return nullptr;
  }
  const DLTensor& made = allocated->managed->dl_tensor;
  return static_cast<char*>(made.data) + made.byte_offset;
}

PyObject* TakeObject(const DLPackExchangeAPI* api, Allocated* allocated) {
  if (allocated->tensor != nullptr) {
    const TorchAllocator* torch = FindTorchAllocator();
    PyObject* object = torch->wrap(allocated->tensor);
    torch->free(std::exchange(allocated->tensor, nullptr));
    return object;
  }
  void* object = nullptr;
  DLManagedTensorVersioned* managed = std::exchange(allocated->managed, nullptr);
  return api->managed_tensor_to_py_object_no_sync(managed, &object) == 0
             ? static_cast<PyObject*>(object)
             : nullptr;
}

void Free(Allocated* allocated) {
  if (allocated->tensor != nullptr) {
    FindTorchAllocator()->free(std::exchange(allocated->tensor, nullptr));
  }
  DLManagedTensorVersioned* managed = std::exchange(allocated->managed, nullptr);
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}
