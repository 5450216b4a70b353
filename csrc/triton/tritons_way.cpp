#include "triton/tritons_way.h"

namespace triton {

PyObject* g_tritons_way = nullptr;

void GoTritonsWay() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return;  // an interrupt
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref text(value != nullptr ? PyObject_Str(value) : PyUnicode_FromString(""));
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  if (text) PyErr_SetObject(g_tritons_way, text.get());
}

int AddTritonsWay(PyObject* module) {
  g_tritons_way = PyErr_NewException("culaunch._core.TritonsWay", PyExc_RuntimeError, nullptr);
  if (g_tritons_way == nullptr) return -1;
  return PyModule_AddObjectRef(module, "TritonsWay", g_tritons_way);
}

}  // namespace triton
