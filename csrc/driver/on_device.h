// A driver call made for Python.
#pragma once

#include <culaunch/guard.h>

#include "driver/errors.h"
#include "python/python.h"

// Run a driver call with a device current and the GIL released, then check its code.
template <class Call>
PyObject* OnDevice(culaunch::Driver& driver, int ordinal, const char* what, Call&& call) {
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    driver.Device(ordinal);
    CUresult code;
    {
      const ReleaseGil released;
      const culaunch::DeviceGuard guard(driver, ordinal);
      code = guard.code() == CUDA_SUCCESS ? call(driver) : guard.code();
    }
    driver.Check(code, what);
    Py_RETURN_NONE;
  });
}
