// Numbers that represent the objects in a key.
#pragma once

#include <cstdint>

#include "python/python.h"

namespace triton {

// Numbers for objects that are part of a key, equal for equal objects of one type.
class Interner {
 public:
  Interner() : numbers_(PyDict_New()), objects_(PyList_New(0)) {}

  // Number an object. *is_immutable: from now on, identity is enough to recognize it. False with a
  // Python error set.
  bool Number(PyObject* object, uint64_t* number, bool* is_immutable);
  // The object of a number, borrowed.
  PyObject* Object(uint64_t number) const {
    return PyList_GetItem(objects_.get(), static_cast<Py_ssize_t>(number));
  }
  PyObject* numbers() const { return numbers_.get(); }
  PyObject* objects() const { return objects_.get(); }

 private:
  Ref numbers_;  // key -> number
  Ref objects_;
};

}  // namespace triton
