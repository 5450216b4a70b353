#include "triton/values/parameter.h"

namespace triton {

bool ReadParameter(PyObject* item, Parameter* parameter) {
  PyObject* name = nullptr;
  PyObject* default_value = nullptr;
  int flags = 0;
  const char* annotation = nullptr;
  if (!PyArg_ParseTuple(item, "UOis", &name, &default_value, &flags, &annotation)) return false;
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  parameter->name = Ref(name);
  if ((flags & kHasDefault) != 0) parameter->default_value = Ref::Borrow(default_value);
  parameter->annotation = annotation;
  if (!ParseForcedType(annotation, &parameter->forced)) {
    PyErr_Format(PyExc_TypeError, "parameter %R has a type that cannot be passed: %s", name,
                 annotation);
    return false;
  }
  parameter->is_constexpr = (flags & kIsConstexpr) != 0;
  parameter->is_const = (flags & kIsConst) != 0;
  parameter->specialize = (flags & kSpecialize) != 0;
  parameter->align = (flags & kAlign) != 0;
  parameter->is_optional = (flags & kOptional) != 0;
  parameter->is_set_to_zero = (flags & kSetToZero) != 0;
  return true;
}

int FindParameter(const Parameter* parameters, size_t count, PyObject* name) {
  for (size_t i = 0; i < count; ++i) {
    if (parameters[i].name.get() == name) return static_cast<int>(i);
  }
  for (size_t i = 0; i < count; ++i) {
    if (PyUnicode_Compare(parameters[i].name.get(), name) == 0) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace triton
