// _core.TritonDispatcher: the native half of a Triton kernel. dispatcher[grid] gives the object
// that is called.
#pragma once

#include "python/python.h"

namespace triton {

extern PyTypeObject* g_dispatcher_type;

struct DispatcherObject;

// What dispatcher[grid] gives. Null with a Python error set where it is no grid.
PyObject* LauncherFor(DispatcherObject* self, PyObject* grid);

int AddDispatcherType(PyObject* module);

}  // namespace triton
