// _core.Function: a call binds the arguments, finds the program of their kind, and runs it.
#pragma once

#include "python/python.h"

namespace function {

int AddFunctionType(PyObject* module);

}  // namespace function
