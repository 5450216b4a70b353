// While NVRTC up to 13.0 reads a source, it installs its own handler for SIGINT and SIGTERM. The
// handler ends the process with code 4, and no other code, including Python, learns of the signal.
#pragma once

#include <string>

#include "python/python.h"

// keep_signal_handlers(path) -> bool: prevent a loaded library from taking these two signals.
// False: it never calls signal().
PyObject* KeepSignalHandlers(PyObject* module, PyObject* path);

// The same. False if the library is not loaded, or never calls signal().
bool KeepSignalHandlersOf(const std::string& path, bool* is_loaded = nullptr);
