// The methods of the native half that the Python half of a Triton kernel calls.
#pragma once

#include "python/type_builder.h"

namespace triton {

struct State;

void AddDispatcherMethods(TypeBuilder* builder);

// Forget every variant and tuned configuration.
void ClearVariants(State& state);

}  // namespace triton
