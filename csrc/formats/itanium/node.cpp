#include "formats/itanium/node.h"

#include <algorithm>

#include "formats/itanium/rebinding.h"

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

Joined::Joined(const List& parts, bool is_operand) : parts_(parts) {
  Contains(parts);
  is_operand_ = is_operand;
}

void Joined::Left(Printer& out) const {
  for (const Node* part : parts_) part->Print(out);
}

const Node* Joined::Rebound(Rebinding& rebinding) const {
  return rebinding.arena().Make<Joined>(rebinding(parts_), is_operand());
}

Commas::Commas(std::string_view before, const List& items, std::string_view after)
    : before_(before), items_(items), after_(after) {
  Contains(items);
}

void Commas::Left(Printer& out) const {
  // `< <` after `operator<`, and below `> >`, as c++filt has them: the two could be one operator.
  if (before_ == "<" && out.EndsWith('<')) out.Add(" ");
  out.Add(before_);
  items_.Print(out);
  if (after_ == ">" && out.EndsWith('>')) out.Add(" ");
  out.Add(after_);
}

const Node* Commas::Rebound(Rebinding& rebinding) const {
  return rebinding.arena().Make<Commas>(before_, rebinding(items_), after_);
}

}  // namespace itanium
