// Reading grids, blocks and the other words of a launch configuration from Python objects.
#pragma once

#include <culaunch/launch_config.h>

#include "python/python.h"

// Read a non-negative int that fits 32 bits; false, without an error, for anything else.
bool QuickNumber(PyObject* object, uint32_t* number);

// Read an int, or a tuple of one to three, likewise, into three numbers.
bool QuickDims(PyObject* object, uint32_t* numbers);

// Read other forms: any sequence of up to three integers, or an object that is one. False, without
// an error, for anything else.
bool ReadSlowDims(PyObject* object, uint32_t* numbers, bool* is_too_large);

// Read `grid`, `block` or a cluster; false with an error that names it.
bool ReadDims(const char* name, PyObject* object, culaunch::Dim3* dims);

// Read a byte count; false with an error that names it.
bool ReadBytes(const char* name, PyObject* object, uint32_t* bytes);

// Read a stream: None, a handle, or an object that Python accepts as a stream.
bool ReadStream(PyObject* object, CUstream* stream);
