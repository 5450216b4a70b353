// Launches of a kernel as the nodes of a graph.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "graph_slots.h"
#include "kernel_state.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

inline bool KernelState::AddTo(GraphPass& pass, size_t index, const CUlaunchConfig& config,
                               int ordinal, void** arguments) noexcept {
  const CUfunction function = config.numAttrs == 0 ? Resident(config, ordinal) : nullptr;
  return function != nullptr && pass.Set(index, {static_cast<KernelOnDevices*>(this), function,
                                                 config, parameters_, arguments});
}

CULAUNCH_NAMESPACE_END
