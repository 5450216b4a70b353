// Types and template arguments of the Itanium grammar.
#include <string>

#include "formats/itanium/packs.h"
#include "formats/itanium/parser.h"

namespace itanium {

// Parse one type, and remember it if the grammar requires it.
const Node* Parser::Type() {
  const Nested nested(*this);
  const char first = cursor_.Peek();
  if (const std::string_view name = Builtin(first); !name.empty()) {
    cursor_.Take();
    return Made(name);
  }
  if (first == 'D') {
    if (const std::string_view name = LongBuiltin(cursor_.Peek(1)); !name.empty()) {
      cursor_.Take(2);
      return Made(name);
    }
    if (cursor_.Peek(1) == 'F') return ExtendedFloat();
  }
  const Node* found = nullptr;
  if (first == 'S' && cursor_.Peek(1) != 't') {
    found = Substituted();
    if (cursor_.Peek() != 'I') return found;
    found = Specialized(found);
  } else {
    found = Compound();
  }
  Remember(found);
  return found;
}

const Node* Parser::Compound() {
  switch (cursor_.Peek()) {
    case 'r':
    case 'V':
    case 'K': {
      const Qualifiers words = CvQualifiers();
      if (cursor_.Peek() == 'F') return FunctionType(Spaced(words));
      if (cursor_.Accept("Do")) {
        return FunctionType(arena_.Concatenate({" noexcept", Spaced(words)}));
      }
      return arena_.Make<Qualified>(Type(), words);
    }
    case 'P':
      cursor_.Take();
      return arena_.Make<Pointer>(Type(), "*");
    case 'R':
      cursor_.Take();
      return arena_.Make<Pointer>(Type(), "&");
    case 'O':
      cursor_.Take();
      return arena_.Make<Pointer>(Type(), "&&");
    case 'M': {
      cursor_.Take();
      const Node* const owner = Type();
      return arena_.Make<Pointer>(Type(), "*", owner);
    }
    case 'F':
      return FunctionType("");
    case 'A':
      return ArrayType();
    case 'T':
      return ParameterType();
    case 'D':
      return Extended();
    case 'U': {
      cursor_.Take();
      const std::string_view word = cursor_.Take(cursor_.TakeNumber());
      return arena_.Make<Qualified>(Type(), Qualifiers{word}, true);
    }
    case 'u':
      cursor_.Take();
      return Made(cursor_.Take(cursor_.TakeNumber()));
  }
  return AnyName(false).node;
}

const Node* Parser::ParameterType() {
  if (Has("sue", cursor_.Peek(1))) {
    // `struct X`, spelled out in the source: an elaborated type name.
    cursor_.Take(2);
    return AnyName(false).node;
  }
  const Node* const found = TemplateParameter();
  if (cursor_.Peek() != 'I') return found;
  Remember(found);
  return Specialized(found);
}

// Types that begin with D.
const Node* Parser::Extended() {
  if (cursor_.Accept("Dp")) return arena_.Make<Expansion>(Type());
  if (Has("tT", cursor_.Peek(1))) return Decltype();
  if (cursor_.Accept("Dv")) {
    const std::string_view size = arena_.Concatenate({std::to_string(cursor_.TakeNumber())});
    cursor_.Expect('_');
    return Join(Type(), " __vector(", size, ")");
  }
  if (cursor_.Accept("Do")) return FunctionType(" noexcept");
  throw Unsupported();
}

// Also a builtin type, but not a substitution candidate.
const Node* Parser::ExtendedFloat() {
  cursor_.Expect("DF");
  const std::string bits = std::to_string(cursor_.TakeNumber());
  if (cursor_.Accept('b')) return Made("std::bfloat16_t");
  if (cursor_.Accept('x')) return Made(arena_.Concatenate({"_Float", bits, "x"}));
  cursor_.Expect('_');
  return Made(arena_.Concatenate({"_Float", bits}));
}

const Node* Parser::Decltype() {
  if (!cursor_.Accept("Dt")) cursor_.Expect("DT");
  const Node* const found = Join("decltype (", Expression(), ")");
  cursor_.Expect('E');
  return found;
}

const Node* Parser::FunctionType(std::string_view qualifiers) {
  cursor_.Expect('F');
  cursor_.Accept('Y');
  const Node* const result = Type();
  List* const params = arena_.Make<List>();
  std::string_view reference;
  if (!cursor_.Accept('v')) {
    while (!cursor_.at_end() && cursor_.Peek() != 'E' &&
           !(Has("RO", cursor_.Peek()) && cursor_.Peek(1) == 'E')) {
      params->Add(arena_, Type());
    }
  }
  if (cursor_.Accept('R')) {
    reference = " &";
  } else if (cursor_.Accept('O')) {
    reference = " &&";
  }
  cursor_.Expect('E');
  return arena_.Make<Function>(result, *params, arena_.Concatenate({qualifiers, reference}));
}

const Node* Parser::ArrayType() {
  cursor_.Expect('A');
  const Node* size = nullptr;
  if (IsDigit(cursor_.Peek())) {
    size = Made(arena_.Concatenate({std::to_string(cursor_.TakeNumber())}));
  } else {
    size = cursor_.Peek() == '_' ? Made("") : Expression();
  }
  cursor_.Expect('_');
  return arena_.Make<Array>(Type(), size);
}

// `T_`, `T0_`, ...: parameters that the template arguments define.
const Node* Parser::TemplateParameter() {
  cursor_.Expect('T');
  const int64_t index = cursor_.TakeSequenceNumber();
  return arena_.Make<TemplateParam>(index, Rebinding::Argument(arena_, template_arguments_, index));
}

const Node* Parser::Specialized(const Node* name, bool is_tagged) {
  return Join(name, Enclosed("<", TemplateArguments(is_tagged), ">"));
}

const List& Parser::TemplateArguments(bool is_tagged) {
  cursor_.Expect('I');
  List* const found = arena_.Make<List>();
  if (is_tagged) template_arguments_ = found;
  while (!cursor_.Accept('E')) found->Add(arena_, TemplateArgument());
  return *found;
}

const Node* Parser::TemplateArgument() {
  const Nested nested(*this);
  if (cursor_.Accept('J')) {
    List* const items = arena_.Make<List>();
    while (!cursor_.Accept('E')) items->Add(arena_, TemplateArgument());
    return arena_.Make<Pack>(*items);
  }
  if (cursor_.Accept('X')) {
    const Node* const found = Expression();
    cursor_.Expect('E');
    return found;
  }
  return cursor_.Peek() == 'L' ? Literal() : Type();
}

// `S_`, `S0_`, ... or one of the fixed names.
const Node* Parser::Substituted() {
  cursor_.Expect('S');
  if (const std::string_view name = Standard(cursor_.Peek()); !name.empty()) {
    cursor_.Take();
    return Made(name);
  }
  const auto index = static_cast<uint64_t>(cursor_.TakeSequenceNumber(36));
  if (index >= substitutions_.size()) throw Unsupported();
  const Substitution& found = substitutions_[index];
  if (found.arguments == template_arguments_) return found.node;
  return rebinding_.Bind(found.node, template_arguments_);
}

Qualifiers Parser::CvQualifiers() {
  Qualifiers words;
  if (cursor_.Accept('r')) words[2] = "restrict";
  if (cursor_.Accept('V')) words[1] = "volatile";
  if (cursor_.Accept('K')) words[0] = "const";
  return words;
}

// The words, each after a space.
std::string_view Parser::Spaced(const Qualifiers& words) {
  const auto space = [](std::string_view word) -> std::string_view {
    return word.empty() ? "" : " ";
  };
  return arena_.Concatenate(
      {space(words[0]), words[0], space(words[1]), words[1], space(words[2]), words[2]});
}

}  // namespace itanium
