// The tensors that an operator writes. The implementation counts their versions
// (arguments/tensor_versions.h).
#pragma once

#include <cstddef>
#include <vector>

#include "python/python.h"

namespace torch_operators {

// The places of the arguments that an operator writes.
using WrittenArguments = std::vector<size_t>;

// Read them from a tuple of int. False with a Python error set.
bool ReadWrittenArguments(PyObject* places, WrittenArguments* written);

// Count a write to the tensors at these places, and to those in lists there. Other objects are
// skipped. False with a Python error set.
bool CountWrittenArguments(const WrittenArguments& written, PyObject* const* arguments,
                           size_t count);

}  // namespace torch_operators
