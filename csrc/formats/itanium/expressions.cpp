// Expressions of the Itanium grammar: literals, array sizes and the operands of decltype.
#include <string>

#include "formats/itanium/packs.h"
#include "formats/itanium/parser.h"

namespace itanium {

const Node* Parser::Expression() {
  const Nested nested(*this);
  const char first = cursor_.Peek();
  if (first == 'L') return Literal();
  if (first == 'T') return TemplateParameter();
  if (IsDigit(first)) return Unresolved();
  const std::string_view code = cursor_.Take(2);
  if (code == "fp" || code == "fL") return FunctionParam();
  if (code == "on") return Unresolved();
  return Operation(code);
}

// Parse the operation whose code has just been read.
const Node* Parser::Operation(std::string_view code) {
  if (const Operator* const found = FindOperator(code); found != nullptr) {
    if (found->operands == 1) return Unary(*found);
    if (found->operands == 2) return Binary(*found);
  }
  if (const std::string_view cast = Cast(code); !cast.empty()) {
    const Node* const type = Type();
    return Join(cast, "<", type, ">(", Expression(), ")");
  }
  if (code == "qu") {
    const Node* const condition = Wrapped(Expression());
    const Node* const yes = Wrapped(Expression());
    return Join(condition, "?", yes, " : ", Wrapped(Expression()));
  }
  if (code == "dt" || code == "pt") {
    const Node* const object = Wrapped(Expression());
    return Join(object, code == "dt" ? "." : "->", Wrapped(Unresolved()));
  }
  if (code == "cl") {
    const Node* const function = Wrapped(Expression());
    return Join(function, Enclosed("(", UntilEnd(), ")"));
  }
  if (code == "cv") {
    const Node* const type = Type();
    const List& items = cursor_.Accept('_') ? UntilEnd() : ListOf(Expression());
    return Join("(", type, ")", Enclosed("(", items, ")"));
  }
  if (code == "tl") {
    const Node* const type = Type();
    return Join(type, Enclosed("{", UntilEnd(), "}"));
  }
  if (code == "il") return Enclosed("{", UntilEnd(), "}");
  if (code == "st") return Join("sizeof (", Type(), ")");
  if (code == "at") return Join("alignof (", Type(), ")");
  if (code == "sz") return Join("sizeof ", Wrapped(Expression()));
  if (code == "sp") return arena_.Make<Expansion>(Expression());
  if (code == "sr") {
    const Node* const scope = Scope();
    const Node* const name = Unresolved();
    return name->is_operand() ? Operand(scope, name) : Join(scope, name);
  }
  throw Unsupported();
}

const Node* Parser::Unary(const Operator& found) {
  const Node* const inner = Expression();
  if (found.code != "ad") return Join(found.spelling, Wrapped(inner));
  if (inner->kind() != Kind::kFunction) return Join(found.spelling, inner);
  // The address of a member is written without the parameters.
  const auto* const function = static_cast<const Function*>(inner);
  return Join(found.spelling, function->is_member() ? function->name() : Wrapped(inner));
}

const Node* Parser::Binary(const Operator& found) {
  const Node* const left = Wrapped(Expression());
  const Node* const both = Join(left, found.spelling, Wrapped(Expression()));
  // An unparenthesized `>` would end the template arguments.
  return found.spelling == ">" ? Wrapped(both) : both;
}

const Node* Parser::Literal() {
  cursor_.Expect('L');
  const Node* found = nullptr;
  const char letter = cursor_.Peek();
  if (cursor_.Accept("_Z")) {
    found = Encoding();
  } else if (const char* suffix = LiteralSuffix(letter); suffix != nullptr) {
    cursor_.Take();
    found = Made(arena_.Concatenate({Value(), suffix}));
  } else if (cursor_.Accept("b0")) {
    found = Made("false");
  } else if (cursor_.Accept("b1")) {
    found = Made("true");
  } else {
    const Node* const type = Type();
    found = Has("fdeg", letter) ? Join("(", type, ")[", cursor_.TakeAll("0123456789abcdef"), "]")
                                : Join("(", type, ")", Value());
  }
  cursor_.Expect('E');
  return found;
}

// A number of any length, with `n` for minus.
std::string_view Parser::Value() {
  const bool is_negative = cursor_.Accept('n');
  const std::string_view digits = cursor_.TakeDigits();
  if (digits.empty()) throw Unsupported();
  return is_negative ? arena_.Concatenate({"-", digits}) : digits;
}

// The text before the last `::`, with the `::`.
const Node* Parser::Scope() {
  List* const parts = arena_.Make<List>();
  const bool has_several = cursor_.Accept('N');
  if (!IsDigit(cursor_.Peek())) {
    parts->Add(arena_, Type());
    parts->Add(arena_, Made("::"));
    if (!has_several) return arena_.Make<Joined>(*parts);
  }
  while (!cursor_.Accept('E')) {
    parts->Add(arena_, Unresolved());
    parts->Add(arena_, Made("::"));
  }
  return arena_.Make<Joined>(*parts);
}

const List& Parser::UntilEnd() {
  List* const found = arena_.Make<List>();
  while (!cursor_.Accept('E')) found->Add(arena_, Expression());
  return *found;
}

const Node* Parser::FunctionParam() {
  CvQualifiers();
  const std::string number = std::to_string(cursor_.TakeSequenceNumber() + 1);
  return Operand(arena_.Concatenate({"{parm#", number, "}"}));
}

const Node* Parser::Unresolved() {
  const Node* const found = UnqualifiedName();
  return cursor_.Peek() == 'I' ? Specialized(found) : Operand(found);
}

const Node* Parser::Wrapped(const Node* node) {
  return node->is_operand() ? node : Join("(", node, ")");
}

}  // namespace itanium
