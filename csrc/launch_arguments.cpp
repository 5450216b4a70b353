#include "launch_arguments.h"

#include <cstdint>

#include "numbers.h"

bool QuickNumber(PyObject* object, uint32_t* number) {
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  int64_t value = 0;
  if (!ReadSmallInt(object, &value)) value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0 || value < 0 || value > UINT32_MAX) return false;
  *number = static_cast<uint32_t>(value);
  return true;
}

bool QuickDims(PyObject* object, uint32_t* numbers) {
  numbers[1] = numbers[2] = 1;
  if (!PyTuple_CheckExact(object)) return QuickNumber(object, numbers);
  const Py_ssize_t size = PyTuple_Size(object);
  if (size < 1 || size > 3) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (!QuickNumber(PyTuple_GetItem(object, i), numbers + i)) return false;
  }
  return true;
}

bool ReadDims(const char* name, PyObject* object, culaunch::Dim3* dims) {
  uint32_t numbers[3];
  if (!QuickDims(object, numbers)) {
    // Not the common form: any sequence of integers.
    const bool is_one = PyIndex_Check(object) != 0 && PySequence_Check(object) == 0;
    const Ref items(is_one ? PyTuple_Pack(1, object) : PySequence_Tuple(object));
    if (!items) PyErr_Clear();
    const Py_ssize_t size = items ? PyTuple_Size(items.get()) : 0;
    bool good = size >= 1 && size <= 3;
    numbers[1] = numbers[2] = 1;
    for (Py_ssize_t i = 0; good && i < size; ++i) {
      const Ref integer(PyNumber_Index(PyTuple_GetItem(items.get(), i)));
      if (!integer) PyErr_Clear();
      good = integer && QuickNumber(integer.get(), numbers + i);
    }
    if (!good) {
      PyErr_Format(PyExc_TypeError,
                   "%s must be an int, or a tuple of 1 to 3 ints, each from 1 to 2^31 - 1 (got %R)",
                   name, object);
      return false;
    }
  }
  *dims = culaunch::Dim3(numbers[0], numbers[1], numbers[2]);
  if (dims->Volume() == 0) {
    PyErr_Format(PyExc_ValueError,
                 "%s must be at least 1 in every dimension (got %R): skip the launch of an empty "
                 "problem",
                 name, object);
    return false;
  }
  return true;
}

bool ReadBytes(const char* name, PyObject* object, uint32_t* bytes) {
  const Ref integer(PyNumber_Index(object));
  if (!integer) PyErr_Clear();
  if (!integer || !QuickNumber(integer.get(), bytes)) {
    PyErr_Format(PyExc_TypeError, "%s must be a number of bytes, an int of at least 0 (got %R)",
                 name, object);
    return false;
  }
  return true;
}

bool ReadStream(PyObject* object, CUstream* stream) {
  Ref handle = Ref::Borrow(object);
  if (!PyLong_CheckExact(object)) {
    const Ref streams(PyImport_ImportModule("culaunch._launch._streams"));
    if (!streams) return false;
    handle = Ref(PyObject_CallMethod(streams.get(), "stream_handle", "O", object));
    if (!handle) return false;
  }
  // An address: a negative number overflows.
  *stream = reinterpret_cast<CUstream>(PyLong_AsSize_t(handle.get()));
  return PyErr_Occurred() == nullptr;
}
