// Parses a mangled name into a tree.
#pragma once

#include <string_view>
#include <vector>

#include "formats/itanium/arena.h"
#include "formats/itanium/cursor.h"
#include "formats/itanium/declarators.h"
#include "formats/itanium/node.h"
#include "formats/itanium/rebinding.h"
#include "formats/itanium/sequences.h"
#include "formats/itanium/tables.h"

namespace itanium {

// Parses one name. The grammar needs no backtracking: each letter is read once. Recursive functions
// go through Nested, which has a limit.
class Parser {
 public:
  // The name and the arena must outlive the tree.
  Parser(std::string_view name, Arena& arena) : arena_(arena), cursor_(name), rebinding_(arena) {}

  // The whole name: a Function if it names a function.
  const Node* Whole();

 private:
  struct Name {
    const Node* node = nullptr;
    bool has_result = false;  // whether the return type comes before the parameters
    std::string_view qualifiers;
  };

  // A part of the tree, and the template arguments of the place where it was parsed.
  struct Substitution {
    const Node* node;
    const List* arguments;
  };

  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) {
      if (++parser.depth_ > kMostDepth) throw Unsupported();
    }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    static constexpr int kMostDepth = 64;
    Parser& parser_;
  };

  // Names (names.cpp). `T_` refers to the template arguments of a tagged name.
  const Node* Encoding();
  Name AnyName(bool is_tagged);
  Name NestedName(bool is_tagged);
  Name LocalName(bool is_tagged);
  const Node* UnqualifiedName(const Node** scope = nullptr);
  const Node* SourceName();
  const Node* Unnamed();
  const Node* OperatorName();
  const List& Params();
  const List& LambdaParams();
  std::string_view Ordinal();
  void Discriminator();

  // Types (types.cpp).
  const Node* Type();
  const Node* Compound();
  const Node* ParameterType();
  const Node* Extended();
  const Node* ExtendedFloat();
  const Node* Decltype();
  const Node* FunctionType(std::string_view qualifiers);
  const Node* ArrayType();
  const Node* TemplateParameter();
  const Node* Specialized(const Node* name, bool is_tagged = false);
  const List& TemplateArguments(bool is_tagged);
  const Node* TemplateArgument();
  const Node* Substituted();
  Qualifiers CvQualifiers();
  std::string_view Spaced(const Qualifiers& words);

  // Expressions (expressions.cpp).
  const Node* Expression();
  const Node* Operation(std::string_view code);
  const Node* Unary(const Operator& found);
  const Node* Binary(const Operator& found);
  const Node* Literal();
  std::string_view Value();
  const Node* Scope();
  const List& UntilEnd();
  const Node* FunctionParam();
  const Node* Unresolved();
  const Node* Wrapped(const Node* node);

  void Remember(const Node* node) { substitutions_.push_back({node, template_arguments_}); }

  const Node* Made(std::string_view text) { return arena_.Make<Text>(text); }
  const Node* Made(const Node* node) { return node; }

  // Concatenated parts: nodes and texts.
  template <class... Parts>
  const Node* Join(Parts... parts) {
    return arena_.Make<Joined>(ListOf(parts...));
  }
  template <class... Parts>
  const Node* Operand(Parts... parts) {
    return arena_.Make<Joined>(ListOf(parts...), true);
  }
  template <class... Parts>
  const List& ListOf(Parts... parts) {
    List* const list = arena_.Make<List>();
    (list->Add(arena_, Made(parts)), ...);
    return *list;
  }
  const Node* Enclosed(std::string_view before, const List& items, std::string_view after) {
    return arena_.Make<Commas>(before, items, after);
  }

  Arena& arena_;
  Cursor cursor_;
  Rebinding rebinding_;
  int depth_ = 0;
  // The arguments of the function whose name is parsed; null for a generic lambda's.
  const List* template_arguments_ = nullptr;
  std::vector<Substitution> substitutions_;
};

}  // namespace itanium
