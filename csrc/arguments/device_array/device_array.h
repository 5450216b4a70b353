// _core.DeviceArray: a contiguous array in the memory of a device, with the DLPack C exchange API.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

int AddDeviceArrayType(PyObject* module);

bool IsDeviceArray(PyObject* object);

// A view of an array. The array must outlive it.
DLTensor ViewOf(PyObject* array);

// A DLPack capsule that keeps an array alive. Null with a Python error set.
PyObject* CapsuleOf(PyObject* array, bool is_versioned);

// A DLPack tensor that keeps an array alive. Null with a Python error set.
DLManagedTensorVersioned* ManagedOf(PyObject* array);

// Give the type an attribute; false with a Python error set.
bool SetDeviceArrayAttribute(const char* name, PyObject* value);
