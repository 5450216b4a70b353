// Arrays that have __dlpack__.
#pragma once

#include <culaunch/driver.h>

#include "arguments/array_view.h"
#include "arguments/type_table.h"

// Read where one lives, from __dlpack_device__. False with a Python error set.
bool ReadDlpackDevice(PyObject* array, DLDevice* device);

// Read one that lives there, for use on a stream; `copy`, where it is given, gets the whole tensor.
// False with a Python error set.
bool ReadDlpack(PyObject* array, const TypeEntry& entry, DLDevice device, CUstream stream,
                ArrayView* view, DLTensor* copy = nullptr);
