// Template parameters, the packs of arguments that they stand for, and expansions.
#pragma once

#include <cstdint>

#include "formats/itanium/node.h"

namespace itanium {

// The arguments of a template parameter pack.
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

// A template parameter by its number. In an expansion, a pack parameter is one element.
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

// A pattern, printed once for each element of its packs.
class Expansion final : public Node {
 public:
  explicit Expansion(const Node* pattern);

  void Left(Printer& out) const override;
  bool IsEmpty(Printer&) const override { return count_ == 0; }
  const Node* Rebound(Rebinding& rebinding) const override;

  const Node* pattern() const { return pattern_; }
  // The number of elements; -1 if it contains no pack.
  int count() const { return count_; }

 private:
  const Node* pattern_;
  int count_;
};

// Active while a template parameter's argument is printed, or a node that may be one. The argument
// comes from another place, so the parameter's expansion does not apply to it.
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

// The argument of a template parameter, or any other node unchanged.
const Node* ArgumentOf(const Node* node);

// The same for printing, where an element represents its pack. Null if the element is missing.
const Node* ResolvedIn(const Printer& out, const Node* node);

}  // namespace itanium
