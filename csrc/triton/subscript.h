// _core.TritonSubscript: the __getitem__ of Triton's classes while kernels are launched natively.
#pragma once

#include "python/python.h"

namespace triton {

// TritonSubscript(attribute, original, find, types.MethodType, kinds): kernel[grid] gives a
// launcher of the dispatcher that the kernel has under the attribute, if it serves that kernel;
// else what find(kernel, grid) gives. What is of none of the kinds, a tuple of types, has no
// dispatcher: that is the original's, as somebody's own subclass of Triton's interface is.
int AddSubscriptType(PyObject* module);

}  // namespace triton
