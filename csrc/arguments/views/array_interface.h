// Arrays that have __cuda_array_interface__ or __array_interface__.
#pragma once

#include <culaunch/driver.h>

#include "arguments/views/array_view.h"

// Read an array with __cuda_array_interface__. The pointer determines the device, unless the array
// has reported it. False with a Python error set.
bool ReadCudaInterface(PyObject* array, culaunch::Driver& driver, ArrayView* view,
                       const DLDevice* known = nullptr);

// Wait for the stream that its data is ready on, unless it is the launch's own. False with a Python
// error set.
bool WaitUntilReady(const ArrayView& view, culaunch::Driver& driver, CUstream stream);

// Read an array with __array_interface__. False with a Python error set.
bool ReadHostInterface(PyObject* array, ArrayView* view);
