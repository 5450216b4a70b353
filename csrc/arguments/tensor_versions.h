// The version counter of a tensor. It shows autograd that a tensor which it saved for a gradient
// was written since. torch counts the writes of its own operators; other code must count its own.
#pragma once

#include "python/python.h"

// open_versions(libraries, tensor, keys, count): find torch's function that counts. `tensor` is a
// plain one, and `keys` the dispatch key that only tensors with a counter have. `count` is the
// Python function to call if torch's function is not found.
PyObject* OpenVersions(PyObject* module, PyObject* args);

// Whether that has been done. The functions below require it.
bool AreVersionsOpen();

bool IsTorchTensor(PyObject* object);

// Count a tensor of torch. False with a Python error set.
bool CountTensor(PyObject* tensor);
