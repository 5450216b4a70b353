// Numbers for parameters whose annotation determines their type.
#pragma once

#include <cstdint>

#include "arguments/convert.h"
#include "triton/values/types.h"

namespace triton {

// The bits of a Python number in a floating-point type.
Mismatch ForceFloat(const ForcedType& type, PyObject* object, uint64_t* bits);

// The same for integers, signed or unsigned. They must fit.
Mismatch ForceInt(const ForcedType& type, PyObject* object, uint64_t* bits);

}  // namespace triton
