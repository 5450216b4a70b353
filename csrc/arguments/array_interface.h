// Arrays that have __cuda_array_interface__ or __array_interface__.
#pragma once

#include <culaunch/driver.h>

#include "arguments/array_view.h"

// Read one of the former. The device is the pointer's, unless the array has said it. False with a
// Python error set.
bool ReadCudaInterface(PyObject* array, culaunch::Driver& driver, ArrayView* view,
                       const DLDevice* known = nullptr);

// Wait for the stream that its data is ready on, unless it is the launch's own. False with a Python
// error set.
bool WaitUntilReady(const ArrayView& view, culaunch::Driver& driver, CUstream stream);

// Read one of the latter. False with a Python error set.
bool ReadHostInterface(PyObject* array, ArrayView* view);
