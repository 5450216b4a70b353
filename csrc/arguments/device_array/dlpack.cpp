// Device arrays as tensors of DLPack.
#include <cstring>
#include <new>

#include "arguments/device_array/device_array.h"

namespace {

// After the interpreter has ended, the array's memory is left to the end of the process.
template <class Managed>
void Delete(Managed* managed) {
  if (Py_IsInitialized() == 0) return;
  {
    const HoldGil held;
    Py_DECREF(static_cast<PyObject*>(managed->manager_ctx));
  }
  delete managed;
}

template <class Managed>
Managed* MakeManaged(PyObject* self) {
  auto* managed = new (std::nothrow) Managed{};
  if (managed == nullptr) return nullptr;
  managed->dl_tensor = ViewOf(self);
  managed->manager_ctx = Ref::Borrow(self).release();
  managed->deleter = Delete<Managed>;
  return managed;
}

// A capsule that was not consumed frees its tensor.
template <class Managed>
PyObject* MakeCapsule(Managed* managed, const char* name) {
  if (managed == nullptr) return PyErr_NoMemory();
  PyObject* capsule = PyCapsule_New(managed, name, [](PyObject* dead) {
    const char* current = PyCapsule_GetName(dead);
    if (current == nullptr || std::strncmp(current, "used_", 5) == 0) return;
    auto* held = static_cast<Managed*>(PyCapsule_GetPointer(dead, current));
    if (held != nullptr) held->deleter(held);
  });
  if (capsule == nullptr) managed->deleter(managed);
  return capsule;
}

}  // namespace

PyObject* CapsuleOf(PyObject* array, bool is_versioned) {
  if (!is_versioned) return MakeCapsule(MakeManaged<DLManagedTensor>(array), "dltensor");
  auto* managed = MakeManaged<DLManagedTensorVersioned>(array);
  if (managed != nullptr) managed->version = {1, 0};
  return MakeCapsule(managed, "dltensor_versioned");
}

DLManagedTensorVersioned* ManagedOf(PyObject* array) {
  auto* managed = MakeManaged<DLManagedTensorVersioned>(array);
  if (managed == nullptr) {
    PyErr_NoMemory();
    return nullptr;
  }
  managed->version = {1, 0};
  return managed;
}
