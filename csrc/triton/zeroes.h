// Arrays that a saved set sets to zero before each launch.
#pragma once

#include "triton/grid_memo.h"
#include "triton/state.h"

namespace triton {

enum class Zeroing {
  kDone,
  kLeft,    // nothing was done: one of them is none that the driver may fill as a whole
  kFailed,  // with a Python error set
};

// Let the driver set them to zero, in the order of the stream of the launch. That is for contiguous
// tensors of torch of which no gradient is asked: what zero_() would do otherwise, it does.
CULAUNCH_APART Zeroing SetToZero(const State& state, const ArgumentsOfCall& arguments, int ordinal,
                                 CUstream stream);

}  // namespace triton
