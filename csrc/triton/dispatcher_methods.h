// What Python's half of a Triton kernel calls of the native one.
#pragma once

#include "python/type_builder.h"

namespace triton {

struct State;

void AddDispatcherMethods(TypeBuilder* builder);

// Forget every variant and tuned configuration.
void ClearVariants(State& state);

}  // namespace triton
