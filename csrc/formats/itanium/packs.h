// Template parameters, the packs of arguments that they may stand for, and their expansions.
#pragma once

#include <cstdint>

#include "formats/itanium/node.h"

namespace itanium {

// The arguments for a template parameter pack.
class Pack final : public Node {
 public:
  explicit Pack(const List& items);

  void Left(Printer& out) const override { items_.Print(out); }
  bool IsEmpty(Printer& out) const override;
  const Node* Rebound(Rebinding& rebinding) const override;

  const List& items() const { return items_; }

 private:
  const List& items_;
};

// A template parameter by its number; of a pack in an expansion, one element.
class TemplateParam final : public Node {
 public:
  TemplateParam(int64_t index, const Node* argument);

  void Left(Printer& out) const override { Print(out, &Node::Left); }
  void Right(Printer& out) const override { Print(out, &Node::Right); }
  bool IsEmpty(Printer& out) const override;
  const Node* Rebound(Rebinding& rebinding) const override;

  const Node* argument() const { return argument_; }
  // The argument; in an expansion, one element of it, which may be missing.
  const Node* Element(const Printer& out) const;

 private:
  void Print(Printer& out, void (Node::*side)(Printer&) const) const;

  int64_t index_;
  const Node* argument_;
};

// A pattern, once for each element of the packs in it.
class Expansion final : public Node {
 public:
  explicit Expansion(const Node* pattern);

  void Left(Printer& out) const override;
  bool IsEmpty(Printer&) const override { return count_ == 0; }
  const Node* Rebound(Rebinding& rebinding) const override;

  const Node* pattern() const { return pattern_; }
  // How many elements; -1 where there is no pack in it.
  int count() const { return count_; }

 private:
  const Node* pattern_;
  int count_;
};

// Active while the argument of a template parameter is printed, or any node that may be one. The
// argument comes from another place, and is not part of the parameter's expansion.
class ArgumentScope {
 public:
  ArgumentScope(Printer& out, const Node* node) : out_(out), outer_(out.pack_index) {
    if (node->kind() == Kind::kTemplateParam) out.pack_index = Printer::kAll;
  }
  ~ArgumentScope() { out_.pack_index = outer_; }
  ArgumentScope(const ArgumentScope&) = delete;
  ArgumentScope& operator=(const ArgumentScope&) = delete;

 private:
  Printer& out_;
  const int outer_;
};

// The argument that a template parameter stands for, and any other node unchanged.
const Node* ArgumentOf(const Node* node);

// The same where it is printed: an element of a pack stands for itself. Null where it is missing.
const Node* ResolvedIn(const Printer& out, const Node* node);

}  // namespace itanium
