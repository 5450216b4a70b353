// _core.DriverFunction: a Python function of a driver, in the form that ctypes calls.
#pragma once

#include "python/python.h"

int AddDriverFunctionType(PyObject* module);

// Raise the exception that reached a driver function on this thread without becoming its result: an
// interrupt, or an exception of a signal handler. False if there is none.
bool RaiseKept();
