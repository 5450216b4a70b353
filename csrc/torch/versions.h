// The counter of a tensor's versions: by it autograd notices that a tensor which it has kept for a
// gradient was written since. torch counts what its own operators write; an operator's
// implementation counts for itself.
#pragma once

#include <cstddef>
#include <vector>

#include "python/python.h"

namespace torch_operators {

// open_versions(libraries, tensor, keys, count): find torch's function that counts. tensor: a plain
// one. keys: the dispatch key that only tensors with a counter have. count: the Python function
// that is called where torch's is not found.
PyObject* OpenVersions(PyObject* module, PyObject* args);

// The places of the arguments that an operator writes.
using Written = std::vector<size_t>;

// Read them from a tuple of int. False with a Python error set.
bool ReadWritten(PyObject* places, Written* written);

// Count the tensors that stand at these places, and those in lists there; what is no tensor is
// passed over. False with a Python error set.
bool CountWritten(const Written& written, PyObject* const* arguments, size_t count);

}  // namespace torch_operators
