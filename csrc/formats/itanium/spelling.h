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

// What a mangled name says; the parameters only where they are asked for. Nothing where it is not
// a mangled name, uses parts of C++ that names of kernels do not, or would cost more than a name is
// worth: then no spelling is better than a wrong one. The cost is bounded for any bytes: length,
// depth of the parser and of the tree, memory, and size of the text.
std::optional<Spelling> Spell(std::string_view name, bool with_params = false);

}  // namespace itanium
