// Numbers for parameters whose annotation says their type.
#pragma once

#include <cstdint>

#include "arguments/convert.h"
#include "triton/types.h"

namespace triton {

// The bits that a number of Python has in a type of floating-point numbers.
Mismatch ForceFloat(const ForcedType& type, PyObject* object, uint64_t* bits);

// The same for integers, signed or not; they must fit.
Mismatch ForceInt(const ForcedType& type, PyObject* object, uint64_t* bits);

}  // namespace triton
