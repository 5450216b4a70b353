// The errors in the numbers of a call, as Python's exceptions.
#pragma once

#include <culaunch/python_numbers.h>

#include "function/program.h"

namespace function {

using namespace culaunch::numbers;

// Whether an instruction asks for something, and computes nothing.
inline bool HasCheck(Opcode opcode) {
  return opcode >= Opcode::kCHECK && opcode <= Opcode::kDIMENSION;
}

// Raise what is wrong: the function's own Python has the words.
void RaiseProblem(PyObject* self, const Program& program, const Instruction& one, Problem problem,
                  const Word* registers);

// Put a text, where there is one, before the message of the error that is set.
void PrefixError(PyObject* text);

}  // namespace function
