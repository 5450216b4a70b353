// _core.TritonLauncher: what dispatcher[grid] gives; calling it is the hot path.
#pragma once

#include "triton/dispatcher.h"

// Make the object that dispatcher[grid] gives.
PyObject* MakeTritonLauncher(PyObject* dispatcher, PyObject* grid);

// Read a grid: an int, or a sequence of one to three ints; a zero is allowed.
bool ReadTritonGrid(PyObject* grid, uint32_t* dims);

// Ask a grid that is a function: `values` are the arguments by name, to which the constants of a
// saved variant, if any, are added.
bool AskTritonGrid(PyObject* grid, PyObject* values, const TritonVariantObject* variant,
                   uint32_t* dims);

int AddTritonLauncherType(PyObject* module);
