#include "launch/configuration.h"

#include <cstdint>

#include "driver/errors.h"
#include "python/numbers.h"
#include "python/upcalls.h"

namespace {

// Read an object that is an integer, and not a bool. False if it is not, perhaps with an error.
bool ReadNumber(PyObject* object, uint32_t* number, bool* is_too_large) {
  if (PyBool_Check(object) || PyIndex_Check(object) == 0) return false;
  const Ref integer(PyNumber_Index(object));
  if (!integer) return false;
  if (QuickNumber(integer.get(), number)) return true;
  int64_t value = 0;
  *is_too_large = ReadInt(integer.get(), &value) != IntRange::kSigned || value > UINT32_MAX;
  return false;
}

}  // namespace

bool QuickNumber(PyObject* object, uint32_t* number) {
  if (!PyLong_CheckExact(object)) return false;
  int64_t value = 0;
  if (ReadInt(object, &value) != IntRange::kSigned || value < 0 || value > UINT32_MAX) return false;
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

bool ReadSlowDims(PyObject* object, uint32_t* numbers, bool* is_too_large) {
  const bool is_sequence = PySequence_Check(object) != 0;
  const Py_ssize_t size = is_sequence ? PySequence_Size(object) : 1;
  bool good = size >= 1 && size <= 3;  // an iterable without a size may have no end
  if (PyBytes_Check(object) != 0 || PyByteArray_Check(object) != 0) good = false;
  *is_too_large = false;
  numbers[0] = numbers[1] = numbers[2] = 1;
  for (Py_ssize_t i = 0; good && i < size; ++i) {
    const Ref item(is_sequence ? PySequence_GetItem(object, i) : Ref::Borrow(object).release());
    good = item && ReadNumber(item.get(), numbers + i, is_too_large);
  }
  PyErr_Clear();
  return good;
}

bool ReadDims(const char* name, PyObject* object, culaunch::Dim3* dims) {
  uint32_t numbers[3];
  bool is_too_large = false;
  if (!QuickDims(object, numbers) && !ReadSlowDims(object, numbers, &is_too_large)) {
    PyErr_Format(is_too_large ? PyExc_OverflowError : PyExc_TypeError,
                 "%s must be an int, or a tuple of 1 to 3 ints, each from 1 to 2^31 - 1 (got %S)",
                 name, Spelled(object).get());
    return false;
  }
  *dims = culaunch::Dim3(numbers[0], numbers[1], numbers[2]);
  if (dims->Volume() == 0) {
    PyErr_Format(PyExc_ValueError,
                 "%s must be at least 1 in every dimension (got %S): skip the launch of an empty "
                 "problem",
                 name, Spelled(object).get());
    return false;
  }
  return true;
}

bool ReadBytes(const char* name, PyObject* object, uint32_t* bytes) {
  bool is_too_large = false;
  if (!ReadNumber(object, bytes, &is_too_large)) {
    PyErr_Clear();
    // Numba passes the stream before the shared memory.
    const bool is_stream = !is_too_large && object != Py_None && !PyNumber_Check(object) &&
                           CallUp(Upcall::kStreamHandle, "(O)", object);
    PyErr_Clear();
    PyErr_Format(is_too_large ? PyExc_OverflowError : PyExc_TypeError,
                 "%s must be a number of bytes, an int from 0 to 2^32 - 1 (got %S)%s", name,
                 Spelled(object).get(),
                 is_stream ? ": the stream comes after it, as in [grid, block, 0, stream]" : "");
    return false;
  }
  return true;
}

bool ReadStream(PyObject* object, CUstream* stream) {
  Ref handle = Ref::Borrow(object);
  if (!PyLong_CheckExact(object)) {
    handle = CallUp(Upcall::kStreamHandle, "(O)", object);
    if (!handle) return false;
  }
  // An address: a negative number overflows.
  *stream = reinterpret_cast<CUstream>(PyLong_AsSize_t(handle.get()));
  if (PyErr_Occurred() == nullptr) return true;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
    PyErr_Clear();
    PyErr_Format(PyExc_OverflowError, "stream must be a handle of 64 bits (got %S)",
                 Spelled(handle.get()).get());
  }
  return false;
}
