// The structure of a DeviceArray, for the files with its methods.
#pragma once

#include <cstdint>

#include "driver/driver_object.h"
#include "formats/dlpack.h"
#include "python/python.h"

namespace device_array {

struct ArrayObject {
  PyObject_HEAD PyObject* driver;  // the _core.Driver
  CUdeviceptr data;
  size_t bytes;
  DLDevice device;
  DLDataType dtype;
  int32_t ndim;
  int64_t* shape;                   // owned: ndim sizes, then ndim strides in elements
  DLManagedTensorVersioned* owner;  // of memory that another library owns; null for its own
  PyObject* keeper;                 // the owner of the memory around this part; null for its own
};

inline ArrayObject* Self(PyObject* self) { return reinterpret_cast<ArrayObject*>(self); }

inline culaunch::Driver& DriverOfArray(ArrayObject* self) {
  return *reinterpret_cast<DriverObject*>(self->driver)->driver;
}

inline CUstream StreamOf(unsigned long long handle) {
  return reinterpret_cast<CUstream>(static_cast<uintptr_t>(handle));
}

// DeviceArray._copy_from(buffer, stream, waits), _copy_to(...): the whole array, from and to a
// contiguous buffer of its length.
PyObject* CopyFrom(PyObject* self, PyObject* args);
PyObject* CopyTo(PyObject* self, PyObject* args);

}  // namespace device_array
