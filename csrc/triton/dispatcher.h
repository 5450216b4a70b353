// _core.TritonDispatcher: the native half of a Triton kernel. dispatcher[grid] gives the object
// that is called.
#pragma once

#include "python/python.h"

namespace triton {

int AddDispatcherType(PyObject* module);

}  // namespace triton
