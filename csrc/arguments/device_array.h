// _core.DeviceArray: a contiguous array in the memory of a device, with the DLPack C exchange API.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

int AddDeviceArrayType(PyObject* module);

bool IsDeviceArray(PyObject* object);

// A view of an array, which must live as long.
DLTensor ViewOf(PyObject* array);

// A capsule of DLPack that keeps an array. Null with a Python error set.
PyObject* CapsuleOf(PyObject* array, bool is_versioned);

// A DLPack tensor that keeps an array. Null with a Python error set.
DLManagedTensorVersioned* ManagedOf(PyObject* array);

// Give the type an attribute; false with a Python error set.
bool SetDeviceArrayAttribute(const char* name, PyObject* value);
