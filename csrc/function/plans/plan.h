// Running the plan of a program: arithmetic by Python's rules, checks and guards.
#pragma once

#include "function/program/program.h"

namespace function {

enum class PlanEnd : uint8_t {
  kLeaf,
  kUnknown,  // a guard leads to a branch that is not recorded yet
  kFailed,   // with a Python error set
};

// Run the plan of a function on the inputs of a call, whose driver and device these are.
// `registers` has room for the program's; *leaf is the block that it ends in.
PlanEnd RunPlan(PyObject* self, const Program& program, const Word* inputs,
                culaunch::Driver* driver, int ordinal, Word* registers, int32_t* leaf);

// Recompute the registers that depend on numbers. False if a check or a guard no longer holds: no
// Python error is set, and the registers must not be used.
bool RunSlice(const Program& program, const NumberSlice& slice, const Word* inputs,
              Word* registers);

}  // namespace function
