#include "triton/grids/fallback.h"

namespace triton {

PyObject* g_triton_fallback = nullptr;

void RaiseFallback() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return;  // an interrupt
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref text(value != nullptr ? PyObject_Str(value) : PyUnicode_FromString(""));
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  if (text) PyErr_SetObject(g_triton_fallback, text.get());
}

int AddTritonFallback(PyObject* module) {
  g_triton_fallback =
      PyErr_NewException("culaunch._core.TritonFallback", PyExc_RuntimeError, nullptr);
  if (g_triton_fallback == nullptr) return -1;
  return PyModule_AddObjectRef(module, "TritonFallback", g_triton_fallback);
}

}  // namespace triton
