// Copies between a DeviceArray and the memory of the host.
#include <culaunch/guard.h>
#include <culaunch/launch_recorder.h>

#include "arguments/device_array/object.h"
#include "driver/errors.h"

namespace device_array {

namespace {

// Copy between the array and a contiguous buffer of the same length, on a stream, and wait for it
// on request.
PyObject* CopyBuffer(ArrayObject* self, PyObject* args, bool to_device) {
  Py_buffer host;
  unsigned long long handle = 0;
  int waits = 1;
  if (!PyArg_ParseTuple(args, to_device ? "y*K|p:_copy_from" : "w*K|p:_copy_to", &host, &handle,
                        &waits)) {
    return nullptr;
  }
  PyObject* result = Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    if (static_cast<size_t>(host.len) != self->bytes) {
      PyErr_Format(PyExc_ValueError, "the size of the buffer must be %zu bytes (got %zd)",
                   self->bytes, host.len);
      return nullptr;
    }
    if (self->bytes == 0) Py_RETURN_NONE;
    culaunch::Driver& driver = DriverOfArray(self);
    if (driver.graphs.IsRecording() && culaunch::LaunchRecorder::Current() != nullptr) {
      PyErr_SetString(PyExc_RuntimeError,
                      "a copy between the host and a device would run now, and not be part of the "
                      "graph that is being recorded: add it with graph.copy(target, source)");
      return nullptr;
    }
    const CUstream stream = StreamOf(handle);
    CUresult code;
    {
      const ReleaseGil released;
      const culaunch::DeviceGuard guard(driver, self->device.device_id);
      code = guard.code();
      if (code == CUDA_SUCCESS) {
        code = to_device ? driver.cuMemcpyHtoDAsync(self->data, host.buf, self->bytes, stream)
                         : driver.cuMemcpyDtoHAsync(host.buf, self->data, self->bytes, stream);
      }
      if (code == CUDA_SUCCESS && waits != 0) code = driver.cuStreamSynchronize(stream);
    }
    driver.Check(code, to_device ? "copying to the device" : "copying from the device");
    Py_RETURN_NONE;
  });
  PyBuffer_Release(&host);
  return result;
}

}  // namespace

PyObject* CopyFrom(PyObject* self, PyObject* args) { return CopyBuffer(Self(self), args, true); }
PyObject* CopyTo(PyObject* self, PyObject* args) { return CopyBuffer(Self(self), args, false); }

}  // namespace device_array
