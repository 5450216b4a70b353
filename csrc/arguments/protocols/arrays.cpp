#include "arguments/protocols/arrays.h"

#include "arguments/protocols/cupy.h"
#include "arguments/protocols/dlpack_protocol.h"
#include "arguments/views/array_interface.h"

bool ReadArrayDevice(PyObject* array, const TypeEntry& entry, culaunch::Driver& driver,
                     DLDevice* device) {
  if (entry.has_dlpack) return ReadDlpackDevice(array, device);
  if (entry.has_cuda_interface) {
    ArrayView view;
    if (!ReadCudaInterface(array, driver, &view)) return false;
    *device = view.device;
    return true;
  }
  *device = {culaunch::kDLCPU, 0};
  return true;
}

bool ReadArray(PyObject* array, const TypeEntry& entry, culaunch::Driver& driver, CUstream stream,
               ArrayView* view, DLTensor* tensor) {
  DLDevice device = {0, 0};
  if (entry.has_dlpack) {
    if (!ReadArrayDevice(array, entry, driver, &device)) return false;
    if (ReadDlpack(array, entry, device, stream, view, tensor)) return true;
    // DLPack lacks some element types, and NumPy before 2.1 does not export read-only arrays. Both
    // use the array interface.
    const bool is_host = device.device_type == culaunch::kDLCPU;
    if (!entry.has_cuda_interface && !(is_host && entry.has_interface)) return false;
    if (PyErr_ExceptionMatches(PyExc_BufferError) == 0) return false;
    PyErr_Clear();
    if (is_host) return ReadHostInterface(array, view);
  }
  if (entry.has_cuda_interface) {
    return ReadCudaInterface(array, driver, view, entry.has_dlpack ? &device : nullptr) &&
           WaitUntilReady(*view, driver, stream);
  }
  return ReadHostInterface(array, view);
}

bool ArrayStream(const TypeEntry& entry, CUstream* stream) {
  *stream = nullptr;
  return entry.kind != ArgumentKind::kCupy || CurrentCupyStream(entry, stream);
}
