// The arguments of a call, one for each parameter, by Python's rules.
#pragma once

#include "function/kinds/state.h"

namespace function {

// Fill in `bound`, with borrowed references. False with Python's own TypeError set.
bool Bind(const State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
          PyObject** bound);

}  // namespace function
