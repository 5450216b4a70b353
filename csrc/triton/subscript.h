// _core.TritonSubscript: the __getitem__ of Triton's classes while kernels are launched natively.
#pragma once

#include "python/python.h"

namespace triton {

// TritonSubscript(attribute, original, find, types.MethodType): kernel[grid] gives a launcher of
// the dispatcher that the kernel has under the attribute, if it serves that kernel; else what
// find(kernel, grid) gives.
int AddSubscriptType(PyObject* module);

}  // namespace triton
