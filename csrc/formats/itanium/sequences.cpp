#include "formats/itanium/sequences.h"

#include "formats/itanium/rebinding.h"

namespace itanium {

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
  // Print `< <` after `operator<`, and `> >` below, as c++filt does: without the space, they could
  // be one operator.
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
