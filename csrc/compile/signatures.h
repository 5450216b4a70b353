// Parameter types of extern "C" kernels, which their names do not spell.
#pragma once

#include "python/python.h"

// kernel_signatures(ptx, source, probe) -> dict: see _core.pyi.
PyObject* KernelSignatures(PyObject* module, PyObject* args);
