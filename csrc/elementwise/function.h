// _core.Elementwise: a fused function. A call reads the arrays, finds the kernel for their types
// and layout, and launches it; Python is asked only for what has not been seen before.
#pragma once

#include "python/python.h"

int AddElementwiseType(PyObject* module);
