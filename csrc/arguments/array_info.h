// Queries from Python about arrays that are not launched with.
#pragma once

#include "python/python.h"

// array_info(driver, array): (address, shape, strides in elements, DLPack code, bits, device).
PyObject* ArrayInfo(PyObject* self, PyObject* args);

// array_stream(driver, array): (stream, device), where a launch goes with this array before others;
// None for what is no array on a device.
PyObject* ArrayStreamOf(PyObject* self, PyObject* args);

// reads_in_place(array): whether a launch reads it where it lies, as it does a plain tensor of
// torch.
PyObject* ReadsInPlace(PyObject* self, PyObject* array);
