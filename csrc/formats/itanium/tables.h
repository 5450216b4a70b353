// Fixed spellings of the Itanium C++ ABI. Unknown codes give an empty spelling.
#pragma once

#include <string_view>

namespace itanium {

// A type of one letter, a type after a `D`, and a name after an `S`.
std::string_view Builtin(char letter);
std::string_view LongBuiltin(char letter);
std::string_view Standard(char letter);

// The suffix of a literal of an integer type; null if a literal of the type is a cast.
const char* LiteralSuffix(char letter);

// The name of a cast, such as "static_cast".
std::string_view Cast(std::string_view code);

struct Operator {
  std::string_view code;
  std::string_view spelling;
  int operands;  // 0 if used only in names, or if its expression has its own form
};

// Null for an unknown code.
const Operator* FindOperator(std::string_view code);

}  // namespace itanium
