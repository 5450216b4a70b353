// The meaning of a mangled name, as a tree that prints itself.
//
// A C++ type may surround a name: `void (*name)(int)`. Each node therefore prints its left part
// first, and then its right part. The nodes with a right part are in declarators.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/itanium/arena.h"
#include "formats/itanium/printer.h"

namespace itanium {

class List;
class Rebinding;

// The text that surrounds a pointer to a type.
enum class Shape : uint8_t { kPlain, kArray, kFunction };

enum class Kind : uint8_t {
  kOther,
  kPack,
  kTemplateParam,
  kExpansion,
  kQualified,
  kPointer,
  kArray,
  kFunction
};

// A part of a name. Nodes are immutable, because many other nodes may point to them.
class Node {
 public:
  void Print(Printer& out) const {
    out.Step();
    Left(out);
    Right(out);
  }

  // The text before a declarator, and the text after it.
  virtual void Left(Printer& out) const = 0;
  virtual void Right(Printer&) const {}

  // Whether it prints nothing, like a pack without elements.
  virtual bool IsEmpty(Printer&) const { return false; }

  // The same node with another place's template arguments.
  virtual const Node* Rebound(Rebinding& rebinding) const = 0;

  Kind kind() const { return kind_; }
  Shape shape() const { return shape_; }
  // Whether its right part is not empty. Then nothing separates it from a function's name.
  bool goes_around() const { return goes_around_; }
  // Whether it needs no parentheses as an operand.
  bool is_operand() const { return is_operand_; }
  // Whether its meaning depends on the template parameters.
  bool uses_params() const { return uses_params_; }
  // The number of pack elements that an expansion around it would visit; -1: no pack.
  int pack_size() const { return pack_size_; }

 protected:
  explicit Node(Kind kind = Kind::kOther) : kind_(kind) {}
  ~Node() = default;

  // Track the depth of every part. A node that is too deep is not supported, because printing
  // recurses as deep.
  void Contains(const Node* part);
  void Contains(const List& parts);

  void GoesAround(Shape shape, bool goes_around) {
    shape_ = shape;
    goes_around_ = goes_around;
  }

  Kind kind_;
  Shape shape_ = Shape::kPlain;
  bool goes_around_ = false;
  bool is_operand_ = false;
  bool uses_params_ = false;
  uint8_t depth_ = 1;
  int pack_size_ = -1;
};

// An ordered list of nodes that grows in an arena.
class List {
 public:
  void Add(Arena& arena, const Node* node);

  size_t size() const { return size_; }
  const Node* operator[](size_t i) const { return nodes_[i]; }
  const Node* const* begin() const { return nodes_; }
  const Node* const* end() const { return nodes_ + size_; }

  // Print them with commas between. A pack without elements leaves no comma.
  void Print(Printer& out) const;

 private:
  const Node** nodes_ = nullptr;
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;
};

// A fixed text.
class Text final : public Node {
 public:
  explicit Text(std::string_view text) : text_(text) {}

  void Left(Printer& out) const override { out.Add(text_); }
  const Node* Rebound(Rebinding&) const override { return this; }

 private:
  std::string_view text_;
};

}  // namespace itanium
