// _core.DriverFunction: a function of a driver that is written in Python, as ctypes calls it.
#pragma once

#include "python/python.h"

int AddDriverFunctionType(PyObject* module);

// Raise the exception that reached a driver function on this thread and is not its result: an
// interrupt, what a signal handler raised. False where there is none.
bool RaiseKept();
