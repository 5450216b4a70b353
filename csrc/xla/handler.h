// Functions as custom calls of XLA: XLA calls C++, which calls the function's vectorcall with XLA's
// memory as arrays.
#pragma once

#include "python/python.h"

namespace xla_calls {

// xla_handler(platform, minor version): the capsule that XLA registers for a platform, "cpu" or
// "CUDA". `minor`: of the interface 0.x that this XLA has.
PyObject* Handler(PyObject* module, PyObject* args);

// end_xla_calls(): wait for calls that run on XLA's threads, and refuse later ones. For the end of
// the interpreter: it ends a thread that asks for the interpreter then, and XLA waits for ever for
// a thread of its own that is gone.
PyObject* EndCalls(PyObject* module, PyObject* none);

}  // namespace xla_calls
