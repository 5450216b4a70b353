// The instructions of a program that depend on the numbers among the arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "function/program/program.h"

namespace function {

// The slice for one leaf and the path to it. If numbers change only launches, a call runs this part
// instead of the whole plan.
struct NumberSlice {
  struct Guard {
    int32_t condition;
    bool is_true;  // on the path
  };
  struct LaunchPart {
    uint32_t effect;  // of the leaf
    uint32_t part;
  };

  bool is_possible = false;            // numbers change only launches
  std::vector<uint32_t> instructions;  // of the program, in their order
  std::vector<Guard> guards;
  std::vector<LaunchPart> parts;
  std::vector<uint32_t> grids;  // effects of the leaf: launches whose grid changes

  static NumberSlice Of(const Program& program, int32_t leaf);
};

}  // namespace function
