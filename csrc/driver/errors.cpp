#include "driver/errors.h"

#include "driver/python_function.h"
#include "python/upcalls.h"

Ref ErrorClass(const char* name) {
  const Ref module = Import(modules::kErrors);
  return module ? Ref(PyObject_GetAttrString(module.get(), name)) : Ref();
}

Ref Spelled(PyObject* value) {
  Ref text = CallUp(Upcall::kSpell, "(O)", value);
  if (text) return text;
  PyErr_Clear();
  return Ref(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(value)), "__name__"));
}

void RaiseError(const culaunch::Error& error, const char* call_class) {
  if (RaiseKept()) return;  // the driver was interrupted, and its code says no more
  const char* name = "DriverError";
  bool with_code = true;
  if (error.kind() == culaunch::ErrorKind::kNoDriver) {
    name = "DriverNotFoundError";
  } else if (error.kind() == culaunch::ErrorKind::kCall ||
             error.kind() == culaunch::ErrorKind::kType) {
    if (call_class == nullptr) {
      PyErr_SetString(PyExc_ValueError, error.what());
      return;
    }
    name = call_class;
    with_code = std::string(call_class) == "LaunchError";
  }
  const Ref type = ErrorClass(name);
  if (!type) return;
  const Ref value(with_code
                      ? PyObject_CallFunction(type.get(), "sis", error.what(),
                                              static_cast<int>(error.code()), error.name().c_str())
                      : PyObject_CallFunction(type.get(), "s", error.what()));
  if (value) PyErr_SetObject(type.get(), value.get());
}
