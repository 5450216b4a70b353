// Memory for the arrays that a program makes, from the framework of its arguments.
#pragma once

#include "arguments/allocated.h"

namespace function {

// Whether an array may lie there; false with a Python error set. Null is an empty one.
bool IsAligned(const char* data);

// Allocate a dense array as the framework with the exchange API `api` does. False with a Python
// error set.
bool AllocateDense(const DLPackExchangeAPI* api, DLDevice device, DLDataType type, int rank,
                   const int64_t* shape, char** data, Allocated* allocated);

}  // namespace function
