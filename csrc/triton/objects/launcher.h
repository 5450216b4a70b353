// _core.TritonLauncher: the result of dispatcher[grid]. Calling it is the hot path.
#pragma once

#include "python/python.h"

namespace triton {

// Make the result of dispatcher[grid].
PyObject* MakeLauncher(PyObject* dispatcher, PyObject* grid);

int AddLauncherType(PyObject* module);

}  // namespace triton
