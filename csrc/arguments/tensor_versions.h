// The counter of a tensor's versions: by it autograd notices that a tensor which it has kept for a
// gradient was written since. torch counts what its own operators write; whoever writes for it
// counts for himself.
#pragma once

#include "python/python.h"

// open_versions(libraries, tensor, keys, count): find torch's function that counts. tensor: a plain
// one. keys: the dispatch key that only tensors with a counter have. count: the Python function
// that is called where torch's is not found.
PyObject* OpenVersions(PyObject* module, PyObject* args);

// Whether that has been done; what is below is for then.
bool AreVersionsOpen();

bool IsTorchTensor(PyObject* object);

// Count a tensor of torch. False with a Python error set.
bool CountTensor(PyObject* tensor);
