// The tensors that an operator writes, whose versions its implementation counts:
// arguments/tensor_versions.h.
#pragma once

#include <cstddef>
#include <vector>

#include "python/python.h"

namespace torch_operators {

// The places of the arguments that an operator writes.
using Written = std::vector<size_t>;

// Read them from a tuple of int. False with a Python error set.
bool ReadWritten(PyObject* places, Written* written);

// Count the tensors at these places, and those in lists there; skip other objects. False with a
// Python error set.
bool CountWritten(const Written& written, PyObject* const* arguments, size_t count);

}  // namespace torch_operators
