// A call like the one before it: tensors of torch with the same shapes, the same numbers, and
// launches with what is allocated for them alone.
#pragma once

#include "function/state.h"

namespace function {

// Do such a call, in as few instructions and lines of memory as it takes: behind the driver's own
// work hardly any of them are in the processor's caches, and each costs several times of what it
// costs in a loop without launches. False: it is another call, and nothing has been done. Else
// *result is what it gives, or null with a Python error set.
bool CallQuickly(State& state, PyObject* const* args, PyObject** result);

}  // namespace function
