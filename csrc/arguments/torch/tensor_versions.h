// The version counter of a tensor. It shows autograd that a tensor saved for a gradient has been
// written since. torch counts the writes of its own operators. Other code must count its own.
#pragma once

#include "python/python.h"

// open_versions(libraries, tensor, keys, count): find torch's function that counts. `tensor` is a
// plain one, and `keys` the dispatch key that only tensors with a counter have. `count` is the
// Python function to call if torch's function is not found.
PyObject* OpenVersions(PyObject* module, PyObject* args);

// Whether open_versions() has succeeded. The functions below require it.
bool AreVersionsOpen();

bool IsTorchTensor(PyObject* object);

// Count a write to a torch tensor. False with a Python error set.
bool CountTensor(PyObject* tensor);
