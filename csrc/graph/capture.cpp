// Capture a stream into a graph.
#include "driver/driver_object.h"
#include "driver/errors.h"
#include "graph/graph_object.h"

namespace graph {

namespace {

bool Read(PyObject* args, const char* format, culaunch::Driver** driver, CUstream* stream) {
  PyObject* object = nullptr;
  unsigned long long handle = 0;
  if (!PyArg_ParseTuple(args, format, &object, &handle)) return false;
  *driver = DriverOf(object);
  *stream = reinterpret_cast<CUstream>(static_cast<uintptr_t>(handle));
  return *driver != nullptr;
}

}  // namespace

// begin_capture(driver, stream)
PyObject* BeginCapture(PyObject*, PyObject* args) {
  culaunch::Driver* driver = nullptr;
  CUstream stream = nullptr;
  if (!Read(args, "OK:begin_capture", &driver, &stream)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    const CUresult code = WithoutGil([&] {
      return driver->cuStreamBeginCapture == nullptr
                 ? CUDA_ERROR_NOT_SUPPORTED
                 : driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    });
    driver->Check(code, "beginning the capture");
    Py_RETURN_NONE;
  });
}

// end_capture(driver, stream) -> the graph, which the caller owns
PyObject* EndCapture(PyObject*, PyObject* args) {
  culaunch::Driver* driver = nullptr;
  CUstream stream = nullptr;
  if (!Read(args, "OK:end_capture", &driver, &stream)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    CUgraph graph = nullptr;
    const CUresult code = WithoutGil([&] {
      return driver->cuStreamEndCapture == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                                   : driver->cuStreamEndCapture(stream, &graph);
    });
    driver->Check(code, "ending the capture");
    return PyLong_FromVoidPtr(graph);
  });
}

}  // namespace graph
