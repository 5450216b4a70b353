// _core.TorchOperator: calls a torch operator. It bypasses torch's dispatcher if the dispatcher
// would do nothing.
#pragma once

#include "python/python.h"

namespace torch_operators {

int AddOperatorType(PyObject* module);

}  // namespace torch_operators
