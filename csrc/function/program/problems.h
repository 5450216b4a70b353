// The errors in the numbers of a call, as Python's exceptions.
#pragma once

#include <culaunch/python_numbers.h>

#include "function/program/program.h"

namespace function {

using namespace culaunch::numbers;

// Whether an instruction only checks a condition, and computes nothing.
inline bool HasCheck(Opcode opcode) {
  return opcode >= Opcode::kCHECK && opcode <= Opcode::kDIMENSION;
}

// Raise the error of a problem, with the message of the function's Python half.
void RaiseProblem(PyObject* self, const Program& program, const Instruction& one, Problem problem,
                  const Word* registers);

// Put a text, if there is one, before the message of the error that is set.
void PrefixError(PyObject* text);

}  // namespace function
