#include "arguments/device_array_exchange.h"

#include <string>

#include "arguments/device_array.h"
#include "python/python.h"
#include "python/upcalls.h"

namespace {

bool Allocate(const DLTensor& prototype, DLManagedTensorVersioned** out) {
  const Ref shape(PyTuple_New(prototype.ndim));
  if (!shape) return false;
  for (int32_t i = 0; i < prototype.ndim; ++i) {
    PyObject* size = PyLong_FromLongLong(prototype.shape[i]);
    if (size == nullptr) return false;
    PyTuple_SetItem(shape.get(), i, size);
  }
  const Ref array = CallUp(Upcall::kAllocateArray, "Oiiiii", shape.get(), int{prototype.dtype.code},
                           int{prototype.dtype.bits}, int{prototype.dtype.lanes},
                           prototype.device.device_type, prototype.device.device_id);
  return array &&
         DeviceArrayExchange()->managed_tensor_from_py_object_no_sync(array.get(), out) == 0;
}

// The exception that is raised, as a kind that every library knows and its text.
std::string TakeException(const char** kind) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref held_type(type), held_value(value), held_trace(trace);
  *kind = PyErr_GivenExceptionMatches(type, PyExc_TypeError)    ? "TypeError"
          : PyErr_GivenExceptionMatches(type, PyExc_ValueError) ? "ValueError"
                                                                : "RuntimeError";
  const Ref text(value != nullptr ? PyObject_Str(value) : nullptr);
  const Ref bytes(text ? PyUnicode_AsUTF8String(text.get()) : nullptr);
  const char* words = bytes ? PyBytes_AsString(bytes.get()) : nullptr;
  PyErr_Clear();
  return words != nullptr ? words : "culaunch cannot allocate an array";
}

}  // namespace

int AllocateDeviceArray(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                        void (*set_error)(void*, const char*, const char*)) {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool allocated = Allocate(*prototype, out);
  const char* kind = nullptr;
  const std::string text = allocated ? "" : TakeException(&kind);
  PyGILState_Release(state);
  if (!allocated) set_error(context, kind, text.c_str());
  return allocated ? 0 : -1;
}

int AdoptDeviceArray(DLManagedTensorVersioned* tensor, void** object) {
  const Ref capsule(PyCapsule_New(tensor, "dltensor_versioned", nullptr));
  if (!capsule) return -1;
  *object = CallUp(Upcall::kAdoptArray, "Oiii", capsule.get(), int{tensor->dl_tensor.dtype.code},
                   int{tensor->dl_tensor.dtype.bits}, int{tensor->dl_tensor.dtype.lanes})
                .release();
  return *object != nullptr ? 0 : -1;
}
