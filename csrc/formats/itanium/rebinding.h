// Reading parts of a name with another place's template arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "formats/itanium/node.h"

namespace itanium {

// `T_` in one function's name, and `T_` in the name of a function inside its arguments, are equal
// for substitutions, but different types. The target of a substitution is therefore rebuilt with
// the arguments of the place that uses it. Each part is rebuilt once for each list of arguments.
class Rebinding {
 public:
  explicit Rebinding(Arena& arena) : arena_(arena) {}

  // `node` with these arguments; null: a generic lambda's parameters, which have no arguments.
  const Node* Bind(const Node* node, const List* arguments) {
    arguments_ = arguments;
    return (*this)(node);
  }

  // The template argument with a number.
  static const Node* Argument(Arena& arena, const List* arguments, int64_t index);

  // For nodes that rebuild themselves: their parts, and the argument with a number.
  const Node* operator()(const Node* node);
  const List& operator()(const List& nodes);
  const Node* Argument(int64_t index) { return Argument(arena_, arguments_, index); }
  Arena& arena() { return arena_; }

 private:
  static constexpr size_t kMost = 1 << 14;

  Arena& arena_;
  const List* arguments_ = nullptr;
  std::map<std::pair<const Node*, const List*>, const Node*> bound_;
};

}  // namespace itanium
