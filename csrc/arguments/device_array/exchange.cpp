#include "arguments/device_array/exchange.h"

#include <string>

#include "arguments/device_array/device_array.h"
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
  *out = array ? ManagedOf(array.get()) : nullptr;
  return *out != nullptr;
}

// The current exception: its text, and a kind that every library knows.
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

// A new array like the prototype, for a library that may not hold the GIL.
int AllocateManaged(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                    void (*set_error)(void*, const char*, const char*)) {
  const char* kind = nullptr;
  std::string text;
  bool allocated;
  {
    const HoldGil held;
    allocated = Allocate(*prototype, out);
    if (!allocated) text = TakeException(&kind);
  }
  if (!allocated) set_error(context, kind, text.c_str());
  return allocated ? 0 : -1;
}

// A DeviceArray over a library's tensor. After a failure, the caller still owns the tensor.
int FromManaged(DLManagedTensorVersioned* tensor, void** object) {
  const Ref capsule(PyCapsule_New(tensor, "dltensor_versioned", nullptr));
  if (!capsule) return -1;
  *object = CallUp(Upcall::kAdoptArray, "Oiii", capsule.get(), int{tensor->dl_tensor.dtype.code},
                   int{tensor->dl_tensor.dtype.bits}, int{tensor->dl_tensor.dtype.lanes})
                .release();
  return *object != nullptr ? 0 : -1;
}

int ToManaged(void* object, DLManagedTensorVersioned** out) {
  *out = ManagedOf(static_cast<PyObject*>(object));
  return *out != nullptr ? 0 : -1;
}

int ToView(void* object, DLTensor* out) {
  *out = ViewOf(static_cast<PyObject*>(object));
  return 0;
}

// The current stream of this thread on each device; null: the default stream.
constexpr int kMostDevices = 64;
thread_local void* t_streams[kMostDevices];

int CurrentStream(int32_t, int32_t ordinal, void** stream) {
  *stream = ordinal >= 0 && ordinal < kMostDevices ? t_streams[ordinal] : nullptr;
  return 0;
}

const DLPackExchangeAPI g_exchange = {{1, 1},      nullptr, AllocateManaged, ToManaged,
                                      FromManaged, ToView,  CurrentStream};

}  // namespace

PyObject* GetCurrentStream(PyObject*, PyObject* args) {
  int ordinal = 0;
  void* stream = nullptr;
  if (!PyArg_ParseTuple(args, "i:current_stream", &ordinal)) return nullptr;
  CurrentStream(0, ordinal, &stream);
  return PyLong_FromVoidPtr(stream);
}

PyObject* SetCurrentStream(PyObject*, PyObject* args) {
  int ordinal = 0;
  unsigned long long handle = 0;
  if (!PyArg_ParseTuple(args, "iK:set_current_stream", &ordinal, &handle)) return nullptr;
  if (ordinal < 0 || ordinal >= kMostDevices) {
    PyErr_Format(PyExc_ValueError, "device must be from 0 to %d (got %d)", kMostDevices - 1,
                 ordinal);
    return nullptr;
  }
  t_streams[ordinal] = reinterpret_cast<void*>(static_cast<uintptr_t>(handle));
  Py_RETURN_NONE;
}

const DLPackExchangeAPI* DeviceArrayExchange() { return &g_exchange; }

int AddDeviceArrayExchange() {
  const Ref capsule(
      PyCapsule_New(const_cast<DLPackExchangeAPI*>(&g_exchange), "dlpack_exchange_api", nullptr));
  const char* name = "__dlpack_c_exchange_api__";
  return capsule && SetDeviceArrayAttribute(name, capsule.get()) ? 0 : -1;
}
