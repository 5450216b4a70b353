// NVRTC up to 13.0 gives SIGINT and SIGTERM a handler of its own while it reads a source: it ends
// the process with code 4, and neither Python nor anybody else learns of the signal.
#pragma once

#include "python/python.h"

// keep_signal_handlers(path) -> bool: a library that is loaded no longer takes these two signals.
// False: it never asks for one, with signal().
PyObject* KeepSignalHandlers(PyObject* module, PyObject* path);
