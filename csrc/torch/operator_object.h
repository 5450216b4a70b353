// _core.TorchOperator: a call is a call of torch's operator, past its dispatcher where that would
// do nothing.
#pragma once

#include "python/python.h"

namespace torch_operators {

int AddOperatorType(PyObject* module);

}  // namespace torch_operators
