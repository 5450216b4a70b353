// Arrays that a saved kernel set zeroes before each launch.
#pragma once

#include "triton/dispatchers/state.h"
#include "triton/grids/grid_memo.h"

namespace triton {

enum class Zeroing {
  kDone,
  kLeft,    // nothing was done: the driver cannot fill one of them as a whole
  kFailed,  // with a Python error set
};

// Let the driver set them to zero, in the stream order of the launch. This handles contiguous torch
// tensors that do not require grad. zero_() itself handles all others.
CULAUNCH_APART Zeroing SetToZero(const State& state, const ArgumentsOfCall& arguments, int ordinal,
                                 CUstream stream);

}  // namespace triton
