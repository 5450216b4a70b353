// _core.TritonLauncher: what dispatcher[grid] gives; calling it is the hot path.
#pragma once

#include "python/python.h"

namespace triton {

// Make the object that dispatcher[grid] gives.
PyObject* MakeLauncher(PyObject* dispatcher, PyObject* grid);

int AddLauncherType(PyObject* module);

}  // namespace triton
