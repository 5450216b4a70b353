// _core.Kernel: kernel[grid, block] makes launchers, and caches the most recent ones.
#pragma once

#include "launch/kernel_object.h"
#include "python/python.h"

extern PyTypeObject* g_kernel_type;

int AddKernelType(PyObject* module);
