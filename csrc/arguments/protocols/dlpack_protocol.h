// Arrays that have __dlpack__.
#pragma once

#include <culaunch/driver.h>

#include "arguments/types/type_table.h"
#include "arguments/views/array_view.h"

// Read an array's device from __dlpack_device__. False with a Python error set.
bool ReadDlpackDevice(PyObject* array, DLDevice* device);

// Read an array on that device, for use on a stream. If `copy` is given, it gets the whole tensor.
// False with a Python error set.
bool ReadDlpack(PyObject* array, const TypeEntry& entry, DLDevice device, CUstream stream,
                ArrayView* view, DLTensor* copy = nullptr);
