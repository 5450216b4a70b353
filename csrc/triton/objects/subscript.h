// _core.TritonSubscript: the __getitem__ of Triton's classes while kernels are launched natively.
#pragma once

#include "python/python.h"

namespace triton {

// TritonSubscript(attribute, original, find, types.MethodType, kinds): kernel[grid] returns a
// launcher of the dispatcher in the kernel's attribute, if it serves this kernel. Otherwise it
// returns find(kernel, grid). `kinds` is a tuple of types. Objects of other types, such as a user's
// subclass of Triton's interface, have no dispatcher, and the original serves them.
int AddSubscriptType(PyObject* module);

}  // namespace triton
