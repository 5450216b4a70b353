// The location of an array's data, from __dlpack__, __cuda_array_interface__ or
// __array_interface__.
#pragma once

#include <culaunch/driver.h>

#include "arguments/types/type_table.h"
#include "arguments/views/array_view.h"

// Read where an array of kind kArray lives. False with a Python error set.
bool ReadArrayDevice(PyObject* array, const TypeEntry& entry, culaunch::Driver& driver,
                     DLDevice* device);

// Read an array of kind kArray for use on a stream. The stream then waits for its framework's work
// on other streams. If DLPack provided it, `tensor` gets DLPack's tensor. Returns false with a
// Python error set.
bool ReadArray(PyObject* array, const TypeEntry& entry, culaunch::Driver& driver, CUstream stream,
               ArrayView* view, DLTensor* tensor = nullptr);

// The current stream of the framework that owns an array of kind kArray or kCupy. False with a
// Python error set.
bool ArrayStream(const TypeEntry& entry, CUstream* stream);
