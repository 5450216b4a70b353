// The parts of a kernel's parameters that do not depend on where arrays lie.
#pragma once

#include "function/program.h"

namespace function {

// Whether an effect is left out: of a launch with a condition, say.
inline bool IsSkipped(const Effect& effect, const Word* registers) {
  return effect.predicate >= 0 && registers[effect.predicate] == 0;
}

// Whether the registers alone say what a part is.
bool IsFixed(const Part& part);

// Write this kind of part.
void FillFixed(const Part& part, const Word* registers, unsigned char* target);

// The number of bytes of a dense array; false where it is more than there can be.
bool BytesOf(const Effect& effect, const Word* registers, size_t* bytes);

}  // namespace function
