#include "formats/itanium/node.h"

#include <algorithm>

namespace itanium {

namespace {

constexpr uint8_t kMostDepth = 96;

}  // namespace

void Node::Contains(const Node* part) {
  if (part == nullptr) return;
  if (part->depth_ >= kMostDepth) throw Unsupported();
  depth_ = std::max<uint8_t>(depth_, part->depth_ + 1);
  pack_size_ = std::max(pack_size_, part->pack_size_);
  uses_params_ = uses_params_ || part->uses_params_;
}

void Node::Contains(const List& parts) {
  for (const Node* part : parts) Contains(part);
}

void List::Add(Arena& arena, const Node* node) {
  if (size_ == capacity_) {
    capacity_ = capacity_ == 0 ? 4 : 2 * capacity_;
    const Node** const grown = arena.MakeArray<const Node*>(capacity_);
    std::copy(begin(), end(), grown);
    nodes_ = grown;
  }
  nodes_[size_++] = node;
}

void List::Print(Printer& out) const {
  bool is_first = true;
  for (const Node* node : *this) {
    out.Step();
    if (node->IsEmpty(out)) continue;
    if (!is_first) out.Add(", ");
    node->Print(out);
    is_first = false;
  }
}

}  // namespace itanium
