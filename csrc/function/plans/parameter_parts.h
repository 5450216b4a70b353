// The parts of a kernel's parameters that do not depend on where arrays lie.
#pragma once

#include "function/program/program.h"

namespace function {

// Whether an effect is skipped, such as a conditional launch.
inline bool IsSkipped(const Effect& effect, const Word* registers) {
  return effect.predicate >= 0 && registers[effect.predicate] == 0;
}

// Whether a part depends only on the registers.
bool IsFixed(const Part& part);

// Whether a launch can be prepared: its parameters are numbers and addresses, and its configuration
// needs no list of attributes. Other launches are built at each call.
bool CanBeReady(const Launch& launch);

// Write a part that depends only on the registers.
void FillFixed(const Part& part, const Word* registers, unsigned char* target);

// The number of bytes of a dense array; false if it is too large.
bool BytesOf(const Effect& effect, const Word* registers, size_t* bytes);

}  // namespace function
