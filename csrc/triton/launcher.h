// _core.TritonLauncher: what dispatcher[grid] gives; calling it is the hot path.
#pragma once

#include "triton/dispatcher.h"

namespace triton {

// Make the object that dispatcher[grid] gives.
PyObject* MakeLauncher(PyObject* dispatcher, PyObject* grid);

// Read a grid: an int, or a sequence of one to three ints; a zero is allowed.
bool ReadGrid(PyObject* grid, uint32_t* dims);

// Ask a grid that is a function: `values` are the arguments by name, to which the constants of a
// saved variant, if any, are added.
bool AskGrid(PyObject* grid, PyObject* values, const VariantObject* variant, uint32_t* dims);

int AddLauncherType(PyObject* module);

}  // namespace triton
