// Functions as custom calls of XLA: XLA calls C++, which calls the function's vectorcall with XLA's
// memory as arrays.
#pragma once

#include "python/python.h"

namespace xla_calls {

// xla_handler(platform, minor version): the capsule that XLA registers for a platform, "cpu" or
// "CUDA". `minor` is the minor version of this XLA's interface 0.x.
PyObject* Handler(PyObject* module, PyObject* args);

// end_xla_calls(): wait for calls on XLA's threads, and refuse later ones. Call this before the
// interpreter ends. Otherwise it ends a thread that asks for the GIL, and XLA waits for this thread
// for ever.
PyObject* EndCalls(PyObject* module, PyObject* none);

}  // namespace xla_calls
