// C++ names of kernels: the part of the Itanium C++ ABI's mangling that they use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace itanium {

// The C++ spelling of a name.
struct Spelling {
  std::string text;  // as `c++filt` prints it
  // The types of the parameters in C style, `const float*`; empty if it is not a function's name.
  std::optional<std::vector<std::string>> params;
};

// The spelling of a mangled name, with the parameters only on request. Empty if it is not mangled,
// uses parts of C++ that kernel names do not use, or costs too much: no spelling is better than a
// wrong one. Limits on length, depth, memory and text size bound the cost for any bytes.
std::optional<Spelling> Spell(std::string_view name, bool with_params = false);

}  // namespace itanium
