// C++ names of kernels: the part of the Itanium C++ ABI's mangling that they use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace itanium {

// A name as C++ has it.
struct Spelling {
  std::string text;  // as `c++filt` prints it
  // The types of the parameters in the way of C, `const float*`; nothing where it is not the name
  // of a function.
  std::optional<std::vector<std::string>> params;
};

// The meaning of a mangled name; with the parameters only on request. Empty if it is not mangled,
// uses parts of C++ that kernel names do not use, or costs too much: no spelling is better than a
// wrong one. The cost is bounded for any bytes: length, depth of the parser and of the tree,
// memory, and size of the text.
std::optional<Spelling> Spell(std::string_view name, bool with_params = false);

}  // namespace itanium
