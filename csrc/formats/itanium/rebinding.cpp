#include "formats/itanium/rebinding.h"

#include <string>

namespace itanium {

const Node* Rebinding::Argument(Arena& arena, const List* arguments, int64_t index) {
  if (arguments == nullptr) {
    return arena.Make<Text>(arena.Concatenate({"auto:", std::to_string(index + 1)}));
  }
  if (index >= static_cast<int64_t>(arguments->size())) throw Unsupported();
  return (*arguments)[static_cast<size_t>(index)];
}

const Node* Rebinding::operator()(const Node* node) {
  if (node == nullptr || !node->uses_params()) return node;
  const std::pair<const Node*, const List*> key(node, arguments_);
  const auto known = bound_.find(key);
  if (known != bound_.end()) return known->second;
  if (bound_.size() > kMost) throw Unsupported();
  // The recursion is no deeper than the node, whose depth is limited.
  return bound_[key] = node->Rebound(*this);
}

const List& Rebinding::operator()(const List& nodes) {
  List* const found = arena_.Make<List>();
  for (const Node* node : nodes) found->Add(arena_, (*this)(node));
  return *found;
}

}  // namespace itanium
