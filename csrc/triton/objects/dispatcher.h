// _core.TritonDispatcher: the native half of a Triton kernel. dispatcher[grid] returns a callable
// launcher.
#pragma once

#include "python/python.h"

namespace triton {

extern PyTypeObject* g_dispatcher_type;

struct DispatcherObject;

// The result of dispatcher[grid]. Null with a Python error set if the grid is invalid.
PyObject* LauncherFor(DispatcherObject* self, PyObject* grid);

int AddDispatcherType(PyObject* module);

}  // namespace triton
