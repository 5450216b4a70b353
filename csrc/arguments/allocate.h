// Allocating outputs as the framework of a call's first array does.
#pragma once

#include "arguments/operands.h"
#include "python/python.h"

namespace operands {

// Allocate an array as the framework of the call's first array does, in the dimension order
// `order` (outermost first; null: C order), and read it. Null with a Python error set.
Ref Allocate(const Place& place, uint8_t number, int ndim, const int64_t* shape, const int* order,
             Operand* operand);

}  // namespace operands
