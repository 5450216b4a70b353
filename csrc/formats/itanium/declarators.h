// Types that surround a name: pointers, references, arrays, functions.
//
// A C++ declarator has parts on both sides of the name: `void (*name)(int)`, `float (&name)[3]`.
#pragma once

#include <array>
#include <string_view>

#include "formats/itanium/node.h"

namespace itanium {

// The qualifiers of a type in the order in which C++ names them; unused ones are empty.
using Qualifiers = std::array<std::string_view, 3>;

// A type with const, volatile and restrict, or with a qualifier of a vendor.
class Qualified final : public Node {
 public:
  Qualified(const Node* inner, const Qualifiers& words, bool is_of_vendor = false);

  void Left(Printer& out) const override;
  void Right(Printer& out) const override { inner_->Right(out); }
  const Node* Rebound(Rebinding& rebinding) const override;

  const Node* inner() const { return inner_; }

 private:
  const Node* inner_;
  Qualifiers words_;
  bool is_of_vendor_;
  bool is_east_;  // regardless of the printer's style
};

// A pointer, a reference, or (with the class before it) a pointer to a member.
class Pointer final : public Node {
 public:
  Pointer(const Node* inner, std::string_view symbol, const Node* owner = nullptr);

  void Left(Printer& out) const override { LeftAs(out, symbol_); }
  void Right(Printer& out) const override;
  const Node* Rebound(Rebinding& rebinding) const override;

 private:
  // References to references collapse: to `&&` only if both are `&&`. Returns the reference inside
  // this one; null if there is none. The result may depend on the element of a pack.
  const Pointer* Collapsed(const Printer& out) const;
  void LeftAs(Printer& out, std::string_view symbol) const;

  const Node* inner_;
  std::string_view symbol_;
  const Node* owner_;
};

class Array final : public Node {
 public:
  Array(const Node* element, const Node* size);

  void Left(Printer& out) const override { element_->Left(out); }
  void Right(Printer& out) const override;
  const Node* Rebound(Rebinding& rebinding) const override;

 private:
  const Node* element_;
  const Node* size_;
};

// A function type, or with a name a whole declaration.
class Function final : public Node {
 public:
  // The result may be null: names of functions that are not templates omit it.
  Function(const Node* result, const List& params, std::string_view qualifiers,
           const Node* name = nullptr, bool is_member = false);

  void Left(Printer& out) const override;
  void Right(Printer& out) const override;
  const Node* Rebound(Rebinding& rebinding) const override;

  // As a scope, it is written without its return type.
  const Function* WithoutResult(Arena& arena) const;

  const List& params() const { return params_; }
  const Node* name() const { return name_; }
  bool is_member() const { return is_member_; }

 private:
  const Node* result_;
  const List& params_;
  std::string_view qualifiers_;
  const Node* name_;
  bool is_member_;
};

}  // namespace itanium
