// A call like the one before it: tensors of torch with the same shapes, the same numbers, and
// launches with memory allocated only for them.
#pragma once

#include "function/kinds/state.h"

namespace function {

// Execute the call in as few instructions and cache lines as possible. After the driver's own work,
// hardly any of them are in the processor's caches, and each costs several times as much as in a
// loop without launches. False: the call is a different one, and nothing has been done. Otherwise
// *result is its result, or null with a Python error set.
bool CallQuickly(State& state, PyObject* const* args, PyObject** result);

}  // namespace function
