// _core.Module: a culaunch::Module as a Python object. Neither the garbage collector nor the exit
// unloads it, because its kernels may still run.
#pragma once

#include <culaunch/module.h>

#include "python/python.h"

struct ModuleObject {
  PyObject_HEAD PyObject* driver;  // the _core.Driver
  culaunch::Module* module;
};

extern PyTypeObject* g_module_type;

int AddModuleType(PyObject* module);
