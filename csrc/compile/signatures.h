// Parameter types of extern "C" kernels, whose names do not contain them.
#pragma once

#include "python/python.h"

// kernel_signatures(ptx, source, probe) -> dict: see _core.pyi.
PyObject* KernelSignatures(PyObject* module, PyObject* args);
