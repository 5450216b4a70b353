// Memory for the arrays that a program makes, from the framework of its arguments.
#pragma once

#include "arguments/torch/allocated.h"

namespace function {

// Whether the address is aligned for an array; false with a Python error set. Null: an empty array.
bool IsAligned(const char* data);

// Allocate a dense array as the framework with the exchange API `api` does. False with a Python
// error set.
bool AllocateDense(const DLPackExchangeAPI* api, DLDevice device, DLDataType type, int rank,
                   const int64_t* shape, char** data, Allocated* allocated);

}  // namespace function
