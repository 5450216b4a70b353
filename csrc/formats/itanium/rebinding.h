// Parts of a name as they read with the template arguments of another place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "formats/itanium/node.h"

namespace itanium {

// `T_` in one function's name and `T_` in the name of a function inside its arguments are the same
// to the substitutions, but not the same type. So the target of a substitution is made again with
// the arguments of the place that uses it, each part once for each list of arguments.
class Rebinding {
 public:
  explicit Rebinding(Arena& arena) : arena_(arena) {}

  // `node` with these arguments; null: those of a generic lambda, which have no argument.
  const Node* Bind(const Node* node, const List* arguments) {
    arguments_ = arguments;
    return (*this)(node);
  }

  // The template argument of a number, among those given.
  static const Node* Argument(Arena& arena, const List* arguments, int64_t index);

  // For nodes to make themselves again: their parts, and the argument of a number.
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
