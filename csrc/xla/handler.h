// Functions as custom calls of XLA: XLA calls C++, which calls the function's vectorcall with XLA's
// memory as arrays.
#pragma once

#include "python/python.h"

namespace xla_calls {

// xla_handler(platform, minor version): the capsule that XLA registers for a platform, "cpu" or
// "CUDA". `minor`: of the interface 0.x that this XLA has.
PyObject* Handler(PyObject* module, PyObject* args);

}  // namespace xla_calls
