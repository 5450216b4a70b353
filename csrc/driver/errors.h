// Conversion of culaunch::Error and failed calls to Python's exceptions.
#pragma once

#include <culaunch/error.h>

#include "python/python.h"

// A class of culaunch._errors, or null with a Python error set.
Ref ErrorClass(const char* name);

// The text of a value in a message. %R of a very large int would itself be an error.
Ref Spelled(PyObject* value);

// Raise a culaunch::Error in Python. A mistake in the call becomes `call_class` (a class of
// culaunch._errors, or null for ValueError).
void RaiseError(const culaunch::Error& error, const char* call_class);

// Run `body`. A C++ exception becomes a Python exception, and `failed` is returned.
template <class Result, class Body>
Result Guarded(const char* call_class, Result failed, Body&& body) {
  try {
    return body();
  } catch (const culaunch::Error& error) {
    RaiseError(error, call_class);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    const Ref type = ErrorClass("InternalError");
    if (type) PyErr_SetString(type.get(), error.what());
  }
  return failed;
}
