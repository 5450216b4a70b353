// The target of a custom call: a function, the arguments that are not arrays, and the arrays that
// it writes.
#pragma once

#include <string>
#include <vector>

#include "python/python.h"

namespace xla_calls {

struct Target {
  std::string text;
  Ref callable;
  Ref values;                  // a tuple with one value for each parameter
  Ref keyword_names;           // the names of the last parameters; null: none
  std::vector<long> arrays;    // of each parameter: -1 a value, 0 an array, n a tuple of n arrays,
                               // -1 - n a list of n
  std::vector<size_t> writes;  // arrays that it writes, in the order of XLA's arguments
  size_t array_count = 0;
};

// The target described by a text, looked up once and cached. Null with a Python error set.
const Target* FindTarget(const char* text, size_t size);

}  // namespace xla_calls
