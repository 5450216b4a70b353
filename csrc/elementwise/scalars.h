// Scalar arguments: from a Python number, or a NumPy or ctypes scalar, to a kernel's parameter.
#pragma once

#include "arguments/operands.h"

namespace elementwise {

using namespace operands;

// The bytes of a scalar argument in the type that `number` is computed in. False with a Python
// error set.
bool StoreScalar(const Operand& operand, uint8_t number, unsigned char* target, size_t size);

}  // namespace elementwise
