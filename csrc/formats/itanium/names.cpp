// Names and encodings of the Itanium grammar.
#include <string>

#include "formats/itanium/parser.h"

namespace itanium {

const Node* Parser::Whole() {
  cursor_.Expect("_Z");
  const Node* const found = Encoding();
  if (!cursor_.at_end()) throw Unsupported();
  return found;
}

// A function with its parameters, or the name of a variable.
const Node* Parser::Encoding() {
  const Nested nested(*this);
  const List* const outer = template_arguments_;
  template_arguments_ = arena_.Make<List>();
  const bool is_nested = cursor_.Peek() == 'N';
  const Name name = AnyName(true);
  if (cursor_.at_end() || Has("E.", cursor_.Peek())) {
    template_arguments_ = outer;
    return name.node;
  }
  const Node* const result = name.has_result ? Type() : nullptr;
  const List& params = Params();
  template_arguments_ = outer;
  return arena_.Make<Function>(result, params, name.qualifiers, name.node,
                               is_nested && !name.has_result);
}

Parser::Name Parser::AnyName(bool is_tagged) {
  if (cursor_.Accept('N')) return NestedName(is_tagged);
  if (cursor_.Accept('Z')) return LocalName(is_tagged);
  if (cursor_.Peek() == 'S' && cursor_.Peek(1) != 't') {
    const Node* const found = Substituted();
    if (cursor_.Peek() != 'I') throw Unsupported();
    return {Specialized(found, is_tagged), true, {}};
  }
  const Node* found = nullptr;
  if (cursor_.Accept("St")) {
    cursor_.Accept('L');
    found = Join("std::", UnqualifiedName());
  } else {
    found = UnqualifiedName();
  }
  if (cursor_.Peek() != 'I') return {found, false, {}};
  Remember(found);
  return {Specialized(found, is_tagged), true, {}};
}

Parser::Name Parser::NestedName(bool is_tagged) {
  const std::string_view words = Spaced(CvQualifiers());
  Name name;
  name.qualifiers = cursor_.Accept('R')   ? arena_.Concatenate({words, " &"})
                    : cursor_.Accept('O') ? arena_.Concatenate({words, " &&"})
                                          : words;
  const Node* last = nullptr;
  bool is_constructor = false;
  while (!cursor_.Accept('E')) {
    if (cursor_.Peek() == 'S' && name.node == nullptr) {
      name.node = cursor_.Accept("St") ? Made("std") : Substituted();
      continue;
    }
    name.has_result = false;
    if (cursor_.Peek() == 'I') {
      if (name.node == nullptr) throw Unsupported();
      name.node = Specialized(name.node, is_tagged);
      name.has_result = !is_constructor;
    } else if (cursor_.Peek() == 'T' && name.node == nullptr) {
      name.node = TemplateParameter();
    } else if (cursor_.Peek() == 'D' && Has("tT", cursor_.Peek(1)) && name.node == nullptr) {
      name.node = Decltype();
    } else {
      is_constructor = last != nullptr && Has("CD", cursor_.Peek());
      const Node* const component = UnqualifiedName(&last);
      name.node = name.node == nullptr ? component : Join(name.node, "::", component);
    }
    Remember(name.node);
  }
  if (name.node == nullptr || substitutions_.empty()) throw Unsupported();
  // The whole name is a candidate only as a type, and Type adds it then.
  substitutions_.pop_back();
  return name;
}

// An entity in a function: a variable, a type, a lambda.
Parser::Name Parser::LocalName(bool is_tagged) {
  const Node* where = Encoding();
  if (where->kind() == Kind::kFunction) {
    where = static_cast<const Function*>(where)->WithoutResult(arena_);
  }
  cursor_.Expect('E');
  if (cursor_.Accept('s')) {
    Discriminator();
    return {Join(where, "::", "string literal"), false, {}};
  }
  if (cursor_.Accept('d')) {
    cursor_.Accept('n');
    cursor_.TakeDigits();
    cursor_.Expect('_');
  }
  Name found = AnyName(is_tagged);
  Discriminator();
  found.node = Join(where, "::", found.node);
  return found;
}

void Parser::Discriminator() {
  if (cursor_.Accept("__")) {
    cursor_.TakeNumber();
    cursor_.Expect('_');
  } else if (cursor_.Peek() == '_' && IsDigit(cursor_.Peek(1))) {
    cursor_.Take(2);
  }
}

const List& Parser::Params() {
  List* const params = arena_.Make<List>();
  if (cursor_.Accept('v')) return *params;
  do {
    params->Add(arena_, Type());
  } while (!cursor_.at_end() && !Has("E.", cursor_.Peek()));
  return *params;
}

// One component of a name, with its ABI tags. In a nested name, *scope is the previous component,
// which a constructor repeats. Afterwards it is this one, without its tags.
const Node* Parser::UnqualifiedName(const Node** scope) {
  cursor_.Accept('L');
  const char first = cursor_.Peek();
  const Node* found = nullptr;
  if (IsDigit(first)) {
    found = SourceName();
  } else if (first == 'U') {
    found = Unnamed();
  } else if (scope != nullptr && *scope != nullptr && Has("CD", first) &&
             Has("0123456", cursor_.Peek(1))) {
    cursor_.Take(2);
    found = Join(first == 'D' ? "~" : "", *scope);
  } else {
    found = OperatorName();
  }
  if (scope != nullptr) *scope = found;
  while (cursor_.Accept('B')) found = Join(found, "[abi:", SourceName(), "]");
  return found;
}

const Node* Parser::SourceName() {
  const std::string_view text = cursor_.Take(cursor_.TakeNumber());
  if (text.empty()) throw Unsupported();
  constexpr std::string_view kAnonymous = "_GLOBAL_";
  const bool is_anonymous =
      text.compare(0, kAnonymous.size(), kAnonymous) == 0 && text.size() > kAnonymous.size() + 1 &&
      Has("_.$", text[kAnonymous.size()]) && text[kAnonymous.size() + 1] == 'N';
  return Made(is_anonymous ? "(anonymous namespace)" : text);
}

const Node* Parser::Unnamed() {
  if (cursor_.Accept("Ut")) return Made(arena_.Concatenate({"{unnamed type#", Ordinal(), "}"}));
  cursor_.Expect("Ul");
  const List& params = LambdaParams();
  cursor_.Expect('E');
  return Enclosed("{lambda(", params, arena_.Concatenate({")#", Ordinal(), "}"}));
}

const List& Parser::LambdaParams() {
  // A generic lambda has its own template parameters: `auto:1`, `auto:2`.
  const List* const outer = template_arguments_;
  template_arguments_ = nullptr;
  const List& params = Params();
  template_arguments_ = outer;
  return params;
}

// `_`, `0_`, ... as 1, 2.
std::string_view Parser::Ordinal() {
  const size_t number = cursor_.Peek() == '_' ? 1 : cursor_.TakeNumber() + 2;
  cursor_.Expect('_');
  return arena_.Concatenate({std::to_string(number)});
}

const Node* Parser::OperatorName() {
  if (cursor_.Accept("li")) return Join("operator\"\" ", SourceName());
  const Operator* const found = FindOperator(cursor_.Take(2));
  if (found == nullptr) throw Unsupported();
  const char first = found->spelling[0];
  const bool is_word = first >= 'a' && first <= 'z';
  return Made(arena_.Concatenate({"operator", is_word ? " " : "", found->spelling}));
}

}  // namespace itanium
