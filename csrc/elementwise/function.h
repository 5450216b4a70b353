// _core.Elementwise: a fused function. A call reads the arrays, finds the kernel for their types
// and layout, and launches it. Only a new combination asks Python.
#pragma once

#include "python/python.h"

int AddElementwiseType(PyObject* module);
