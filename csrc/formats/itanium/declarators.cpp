#include "formats/itanium/declarators.h"

#include "formats/itanium/packs.h"
#include "formats/itanium/rebinding.h"

namespace itanium {

namespace {

// The shape of the node as printed: an element of a pack has its own shape.
Shape ShapeIn(const Printer& out, const Node* node) {
  node = ResolvedIn(out, node);
  while (node != nullptr && node->kind() == Kind::kQualified) {
    node = ResolvedIn(out, static_cast<const Qualified*>(node)->inner());
  }
  return node != nullptr ? node->shape() : Shape::kPlain;
}

bool WasSaid(const Said* said, std::string_view word) {
  for (; said != nullptr; said = said->before) {
    if (said->word == word) return true;
  }
  return false;
}

}  // namespace

Qualified::Qualified(const Node* inner, const Qualifiers& words, bool is_of_vendor)
    : Node(Kind::kQualified), inner_(inner), words_(words), is_of_vendor_(is_of_vendor) {
  Contains(inner);
  GoesAround(inner->shape(), inner->goes_around());
  const Kind kind = ArgumentOf(inner)->kind();
  is_east_ =
      is_of_vendor || kind == Kind::kPointer || kind == Kind::kFunction || kind == Kind::kArray;
}

void Qualified::Left(Printer& out) const {
  // A repeated const is printed once.
  Qualifiers words;
  size_t count = 0;
  for (const std::string_view word : words_) {
    if (!word.empty() && !WasSaid(out.said, word)) words[count++] = word;
  }
  const bool is_west = out.west() && !is_east_;
  if (is_west) {
    for (size_t i = 0; i < count; ++i) {
      out.Add(words[i]);
      out.Add(" ");
    }
  }
  std::array<Said, 3> said;
  const Said* last = std::exchange(out.said, nullptr);
  const Node* const inner = ResolvedIn(out, inner_);
  if (inner != nullptr && inner->kind() == Kind::kQualified) {
    // The inner one takes the qualifiers from the printer before it prints anything.
    for (size_t i = 0; i < count; ++i) {
      said[i] = {words[i], last};
      last = &said[i];
    }
    out.said = last;
  }
  inner_->Left(out);
  if (!is_west) {
    for (size_t i = 0; i < count; ++i) {
      out.Add(" ");
      out.Add(words[i]);
    }
  }
}

const Node* Qualified::Rebound(Rebinding& rebinding) const {
  return rebinding.arena().Make<Qualified>(rebinding(inner_), words_, is_of_vendor_);
}

Pointer::Pointer(const Node* inner, std::string_view symbol, const Node* owner)
    : Node(Kind::kPointer), inner_(inner), symbol_(symbol), owner_(owner) {
  Contains(inner);
  Contains(owner);
  GoesAround(Shape::kPlain, inner->shape() != Shape::kPlain || inner->goes_around());
}

const Pointer* Pointer::Collapsed(const Printer& out) const {
  if (symbol_[0] != '&') return nullptr;
  const Node* const inner = ResolvedIn(out, inner_);
  if (inner == nullptr || inner->kind() != Kind::kPointer) return nullptr;
  const auto* const other = static_cast<const Pointer*>(inner);
  return other->symbol_[0] == '&' ? other : nullptr;
}

void Pointer::LeftAs(Printer& out, std::string_view symbol) const {
  if (const Pointer* const other = Collapsed(out); other != nullptr) {
    const ArgumentScope scope(out, inner_);
    other->LeftAs(out, other->symbol_ == "&" ? "&" : symbol);
    return;
  }
  inner_->Left(out);
  const Shape shape = ShapeIn(out, inner_);
  if (shape == Shape::kArray) {
    out.Add(" (");
  } else if (shape == Shape::kFunction) {
    const bool is_after_symbol = out.EndsWith('(') || out.EndsWith('*');
    out.Add(out.EndsWith(' ') || (is_after_symbol && owner_ == nullptr) ? "(" : " (");
  } else if (owner_ != nullptr) {
    out.Add(" ");
  }
  if (owner_ != nullptr) {
    owner_->Print(out);
    out.Add("::");
  }
  out.Add(symbol);
}

void Pointer::Right(Printer& out) const {
  if (const Pointer* const other = Collapsed(out); other != nullptr) {
    const ArgumentScope scope(out, inner_);
    other->Right(out);
    return;
  }
  if (ShapeIn(out, inner_) != Shape::kPlain) out.Add(")");
  inner_->Right(out);
}

const Node* Pointer::Rebound(Rebinding& rebinding) const {
  return rebinding.arena().Make<Pointer>(rebinding(inner_), symbol_, rebinding(owner_));
}

Array::Array(const Node* element, const Node* size)
    : Node(Kind::kArray), element_(element), size_(size) {
  Contains(element);
  Contains(size);
  GoesAround(Shape::kArray, false);
}

void Array::Right(Printer& out) const {
  out.Add(out.EndsWith(']') ? "[" : " [");
  size_->Print(out);
  out.Add("]");
  element_->Right(out);
}

const Node* Array::Rebound(Rebinding& rebinding) const {
  return rebinding.arena().Make<Array>(rebinding(element_), rebinding(size_));
}

Function::Function(const Node* result, const List& params, std::string_view qualifiers,
                   const Node* name, bool is_member)
    : Node(Kind::kFunction),
      result_(result),
      params_(params),
      qualifiers_(qualifiers),
      name_(name),
      is_member_(is_member) {
  Contains(result);
  Contains(params);
  Contains(name);
  GoesAround(Shape::kFunction, false);
  // A function with a name has its own template parameters.
  uses_params_ = uses_params_ && name == nullptr;
}

void Function::Left(Printer& out) const {
  if (result_ != nullptr) {
    result_->Left(out);
    if (!result_->goes_around()) out.Add(" ");
  }
  if (name_ != nullptr) name_->Print(out);
}

void Function::Right(Printer& out) const {
  out.Add("(");
  params_.Print(out);
  out.Add(")");
  out.Add(qualifiers_);
  if (result_ != nullptr) result_->Right(out);
}

const Node* Function::Rebound(Rebinding& rebinding) const {
  return rebinding.arena().Make<Function>(rebinding(result_), rebinding(params_), qualifiers_,
                                          rebinding(name_), is_member_);
}

const Function* Function::WithoutResult(Arena& arena) const {
  return arena.Make<Function>(nullptr, params_, qualifiers_, name_);
}

}  // namespace itanium
