// Queries from Python about arrays outside of launches.
#pragma once

#include "python/python.h"

// array_info(driver, array): (address, shape, strides in elements, DLPack code, bits, device).
PyObject* ArrayInfo(PyObject* self, PyObject* args);

// array_stream(driver, array): the (stream, device) of a launch whose first array this is; None if
// the object is not an array on a device.
PyObject* ArrayStreamOf(PyObject* self, PyObject* args);

// reads_in_place(array): whether a launch reads its members directly, as for a plain torch tensor.
PyObject* ReadsInPlace(PyObject* self, PyObject* array);
