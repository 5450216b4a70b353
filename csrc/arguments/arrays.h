// Where an array's data is: through __dlpack__, __cuda_array_interface__ or __array_interface__.
#pragma once

#include <culaunch/driver.h>

#include "arguments/type_table.h"
#include "formats/dlpack.h"
#include "python/python.h"

// The bytes that an array spans.
struct Extent {
  const void* begin = nullptr;
  size_t bytes = 0;
};

Extent ExtentOf(const DLTensor& tensor);

// A view of an array, valid while the array and `owner` live.
struct ArrayView {
  void* data = nullptr;
  DLDevice device = {0, 0};
  DLDataType dtype = {0, 0, 0};  // bits 0: not known
  Extent extent;
  bool is_read_only = false;
  Ref owner;
};

// Read where an array of kind kArray lives. False with a Python error set.
bool ReadArrayDevice(PyObject* array, const TypeEntry& entry, culaunch::Driver& driver,
                     DLDevice* device);

// Read an array of kind kArray for use on a stream: what its framework still does to it on other
// streams is ordered before. Where DLPack served it, `tensor` gets what it gave. False with a
// Python error set.
bool ReadArray(PyObject* array, const TypeEntry& entry, culaunch::Driver& driver, CUstream stream,
               ArrayView* view, DLTensor* tensor = nullptr);

// Read a cupy.ndarray. False with a Python error set.
bool ReadCupy(PyObject* array, ArrayView* view);

// The current stream of the framework that owns an array of kind kArray or kCupy. False with a
// Python error set.
bool ArrayStream(const TypeEntry& entry, CUstream* stream);

// array_info(driver, array): (address, shape, strides in elements, DLPack code, bits, device).
PyObject* ArrayInfo(PyObject* self, PyObject* args);

// array_stream(driver, array): (stream, device), where a launch goes with this array before others;
// None for what is no array on a device.
PyObject* ArrayStreamOf(PyObject* self, PyObject* args);
