#include "formats/itanium/packs.h"

#include "formats/itanium/rebinding.h"

namespace itanium {

Pack::Pack(const List& items) : Node(Kind::kPack), items_(items) { Contains(items); }

bool Pack::IsEmpty(Printer& out) const {
  for (const Node* item : items_) {
    out.Step();
    if (!item->IsEmpty(out)) return false;
  }
  return true;
}

const Node* Pack::Rebound(Rebinding& rebinding) const {
  return rebinding.arena().Make<Pack>(rebinding(items_));
}

TemplateParam::TemplateParam(int64_t index, const Node* argument)
    : Node(Kind::kTemplateParam), index_(index), argument_(argument) {
  Contains(argument);
  uses_params_ = true;
  GoesAround(argument->shape(), argument->goes_around());
  pack_size_ = argument->kind() == Kind::kPack
                   ? static_cast<int>(static_cast<const Pack*>(argument)->items().size())
                   : -1;
}

void TemplateParam::Print(Printer& out, void (Node::*side)(Printer&) const) const {
  const Node* const element = Element(out);
  if (element == nullptr) return;
  const ArgumentScope scope(out, this);
  (element->*side)(out);
}

bool TemplateParam::IsEmpty(Printer& out) const {
  const Node* const element = Element(out);
  return element == nullptr || element->IsEmpty(out);
}

const Node* TemplateParam::Rebound(Rebinding& rebinding) const {
  return rebinding.arena().Make<TemplateParam>(index_, rebinding.Argument(index_));
}

const Node* TemplateParam::Element(const Printer& out) const {
  if (out.pack_index == Printer::kAll || argument_->kind() != Kind::kPack) return argument_;
  const List& items = static_cast<const Pack*>(argument_)->items();
  const auto index = static_cast<size_t>(out.pack_index);
  return index < items.size() ? items[index] : nullptr;
}

Expansion::Expansion(const Node* pattern)
    : Node(Kind::kExpansion), pattern_(pattern), count_(pattern->pack_size()) {
  Contains(pattern);
  pack_size_ = -1;
}

void Expansion::Left(Printer& out) const {
  if (count_ < 0) {
    out.Add(pattern_->is_operand() ? "" : "(");
    pattern_->Print(out);
    out.Add(pattern_->is_operand() ? "..." : ")...");
  }
  const int outer = out.pack_index;
  for (int index = 0; index < count_; ++index) {
    if (index != 0) out.Add(", ");
    out.pack_index = index;
    pattern_->Print(out);
    out.pack_index = outer;
  }
}

const Node* Expansion::Rebound(Rebinding& rebinding) const {
  return rebinding.arena().Make<Expansion>(rebinding(pattern_));
}

const Node* ArgumentOf(const Node* node) {
  while (node->kind() == Kind::kTemplateParam) {
    node = static_cast<const TemplateParam*>(node)->argument();
  }
  return node;
}

const Node* ResolvedIn(const Printer& out, const Node* node) {
  if (node->kind() != Kind::kTemplateParam) return node;
  const Node* const element = static_cast<const TemplateParam*>(node)->Element(out);
  return element != nullptr ? ArgumentOf(element) : nullptr;
}

}  // namespace itanium
