// Arrays of CuPy.
#pragma once

#include <culaunch/driver.h>

#include "arguments/types/type_table.h"
#include "arguments/views/array_view.h"

// Read a cupy.ndarray. False with a Python error set.
bool ReadCupy(PyObject* array, ArrayView* view);

// CuPy's current stream, found through the type entry of its arrays. False with a Python error set.
bool CurrentCupyStream(const TypeEntry& entry, CUstream* stream);
