// Parts in a sequence: concatenated, or separated by commas.
#pragma once

#include <string_view>

#include "formats/itanium/node.h"

namespace itanium {

// Concatenated parts.
class Joined final : public Node {
 public:
  explicit Joined(const List& parts, bool is_operand = false);

  void Left(Printer& out) const override;
  const Node* Rebound(Rebinding& rebinding) const override;

 private:
  const List& parts_;
};

// A list, `a, b`, between two texts.
class Commas final : public Node {
 public:
  Commas(std::string_view before, const List& items, std::string_view after);

  void Left(Printer& out) const override;
  const Node* Rebound(Rebinding& rebinding) const override;

 private:
  std::string_view before_;
  const List& items_;
  std::string_view after_;
};

}  // namespace itanium
