// One call of a function, from its arguments to its result.
#pragma once

#include "function/kinds/state.h"

namespace function {

// args: one for each parameter, in their order. Null with a Python error set.
PyObject* RunFunction(State& state, PyObject* const* args);

}  // namespace function
