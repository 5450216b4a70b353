#include "triton/values/interner.h"

#include "python/upcalls.h"

namespace triton {

bool Interner::Number(PyObject* object, uint64_t* number, bool* is_immutable) {
  Ref key = Ref::Borrow(object);
  *is_immutable = true;
  if (!PyUnicode_CheckExact(object)) {
    const Ref pair = CallUp(Upcall::kTritonConstant, "(O)", object);
    if (!pair) return false;
    key = Ref::Borrow(PyTuple_GetItem(pair.get(), 0));
    *is_immutable = PyTuple_GetItem(pair.get(), 1) == Py_True;
  }
  PyObject* found = PyDict_GetItemWithError(numbers_.get(), key.get());
  if (found != nullptr) {
    *number = PyLong_AsUnsignedLongLong(found);
    return true;
  }
  if (PyErr_Occurred() != nullptr) return false;
  *number = static_cast<uint64_t>(PyList_Size(objects_.get()));
  const Ref value(PyLong_FromUnsignedLongLong(*number));
  return value && PyList_Append(objects_.get(), object) == 0 &&
         PyDict_SetItem(numbers_.get(), key.get(), value.get()) == 0;
}

}  // namespace triton
