// All possible expansions of the macros in a text.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../../version.h"
#include "characters.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// The text alone does not determine which files a macro can stand for.
struct UnknownName {};

// A token of a text that is expanded.
struct Token {
  std::string text;
  std::set<std::string> hidden;  // the macros that it came from, which are not expanded in it again

  bool operator<(const Token& other) const {
    return text != other.text ? text < other.text : hidden < other.hidden;
  }
};
using Tokens = std::vector<Token>;

// One definition of a macro; without parameters it is replaced everywhere.
struct Definition {
  bool has_parameters = false;
  std::vector<std::string> parameters;
  std::optional<std::string> variadic;
  std::vector<std::string> body;

  bool operator<(const Definition& other) const {
    if (has_parameters != other.has_parameters) return has_parameters < other.has_parameters;
    if (parameters != other.parameters) return parameters < other.parameters;
    return variadic != other.variadic ? variadic < other.variadic : body < other.body;
  }
};
using Definitions = std::unordered_map<std::string, std::set<Definition>>;

inline bool IsSpace(std::string_view token) { return !token.empty() && IsSpace(token.front()); }
inline bool IsPaste(std::string_view token) { return token == "##" || token == "%:%:"; }
inline bool IsStringify(std::string_view token) { return token == "#" || token == "%:"; }

inline const std::string& TextOf(const std::string& token) { return token; }
inline const std::string& TextOf(const Token& token) { return token.text; }

// The place of the next token that is not blank.
template <class List>
size_t Solid(const List& tokens, size_t at) {
  while (at < tokens.size() && IsSpace(std::string_view(TextOf(tokens[at])))) ++at;
  return at;
}

// Where a call's parentheses end, or the same place if there are none.
template <class List>
size_t EndOfCall(const List& tokens, size_t at) {
  const size_t open = Solid(tokens, at);
  if (open >= tokens.size() || TextOf(tokens[open]) != "(") return at;
  int depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    if (TextOf(tokens[i]) == "(") ++depth;
    if (TextOf(tokens[i]) == ")") --depth;
    if (depth == 0) return i + 1;
  }
  return tokens.size();
}

// One text's expansions, in all ways at once; it gives up if there are too many.
class Expansion {
 public:
  explicit Expansion(const Definitions& definitions) : definitions_(definitions) {}

  // All that tokens may become; a macro that may be undefined stays one way, too.
  std::set<Tokens> Results(const Tokens& tokens) {
    std::set<Tokens> found;
    std::vector<std::pair<Tokens, Tokens>> todo = {{{}, tokens}};
    while (!todo.empty()) {
      Step();
      auto [done, rest] = std::move(todo.back());
      todo.pop_back();
      size_t at = 0;
      while (at < rest.size() && !IsMacro(rest[at])) ++at;
      Tokens before = std::move(done);
      before.insert(before.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(at));
      if (at == rest.size()) {
        found.insert(std::move(before));
        continue;
      }
      const Token macro = rest[at];
      Tokens after(rest.begin() + static_cast<std::ptrdiff_t>(at) + 1, rest.end());
      for (Tokens& one : Replaced(macro, after)) todo.emplace_back(before, std::move(one));
      before.push_back(macro);
      todo.emplace_back(std::move(before), std::move(after));
    }
    return found;
  }

 private:
  static constexpr int kMostSteps = 4000;

  struct Call {
    std::vector<Tokens> given;
    Tokens after;
    std::set<std::string> hidden;  // by the last parenthesis
  };
  using Arguments = std::map<std::string, Tokens>;

  bool IsMacro(const Token& token) const {
    return definitions_.count(token.text) != 0 && token.hidden.count(token.text) == 0;
  }

  void Step() {
    if (++steps_ > kMostSteps) throw UnknownName();
  }

  // The text after a macro is replaced, for each of its definitions.
  std::vector<Tokens> Replaced(const Token& macro, const Tokens& after) {
    std::vector<Tokens> found;
    const std::optional<Call> call = ReadCall(after);
    for (const Definition& definition : definitions_.at(macro.text)) {
      const std::vector<std::string>& body = definition.body;
      if (std::find(body.begin(), body.end(), "__VA_OPT__") != body.end()) throw UnknownName();
      if (!definition.has_parameters) {
        std::set<std::string> inside = macro.hidden;
        inside.insert(macro.text);
        Tokens replaced;
        for (const std::string& one : body) replaced.push_back({one, inside});
        found.push_back(Joined(Pasted(replaced), after));
        continue;
      }
      Arguments arguments;
      if (!call || !Bind(definition, call->given, &arguments)) continue;
      std::set<std::string> inside = {macro.text};
      std::set_intersection(macro.hidden.begin(), macro.hidden.end(), call->hidden.begin(),
                            call->hidden.end(), std::inserter(inside, inside.end()));
      // An argument means the same in all the places that it has in the body.
      std::vector<std::pair<std::string, std::set<Tokens>>> each;
      for (const auto& [name, argument] : arguments) {
        if (std::find(body.begin(), body.end(), name) != body.end()) {
          each.emplace_back(name, Results(argument));
        }
      }
      Arguments expanded;
      Choose(each, 0, &expanded, [&] {
        Step();
        found.push_back(
            Joined(Pasted(Substituted(body, arguments, expanded, inside)), call->after));
      });
    }
    return found;
  }

  template <class Visit>
  static void Choose(const std::vector<std::pair<std::string, std::set<Tokens>>>& each,
                     size_t index, Arguments* chosen, const Visit& visit) {
    if (index == each.size()) {
      visit();
      return;
    }
    for (const Tokens& one : each[index].second) {
      (*chosen)[each[index].first] = one;
      Choose(each, index + 1, chosen, visit);
    }
  }

  static Tokens Joined(Tokens first, const Tokens& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  // Read a call's arguments.
  static std::optional<Call> ReadCall(const Tokens& tokens) {
    const size_t open = Solid(tokens, 0);
    const size_t end = EndOfCall(tokens, 0);
    if (end == 0 || tokens[end - 1].text != ")") return std::nullopt;
    Call call;
    size_t start = open + 1;
    int depth = 0;
    for (size_t i = open; i < end; ++i) {
      if (tokens[i].text == "(") ++depth;
      if (tokens[i].text == ")") --depth;
      if ((depth == 1 && tokens[i].text == ",") || depth == 0) {
        size_t last = i;
        while (start < last && IsSpace(std::string_view(tokens[start].text))) ++start;
        while (last > start && IsSpace(std::string_view(tokens[last - 1].text))) --last;
        call.given.emplace_back(tokens.begin() + static_cast<std::ptrdiff_t>(start),
                                tokens.begin() + static_cast<std::ptrdiff_t>(last));
        start = i + 1;
      }
    }
    call.after.assign(tokens.begin() + static_cast<std::ptrdiff_t>(end), tokens.end());
    call.hidden = tokens[end - 1].hidden;
    return call;
  }

  static bool Bind(const Definition& definition, std::vector<Tokens> given, Arguments* arguments) {
    const std::vector<std::string>& names = definition.parameters;
    if (names.empty() && given.size() == 1 && given[0].empty()) given.clear();
    if (!definition.variadic && given.size() != names.size()) return false;
    for (size_t i = 0; i < names.size() && i < given.size(); ++i) (*arguments)[names[i]] = given[i];
    if (!definition.variadic) return true;
    Tokens joined;
    for (size_t i = names.size(); i < given.size(); ++i) {
      if (i != names.size()) joined.push_back({",", {}});
      joined.insert(joined.end(), given[i].begin(), given[i].end());
    }
    (*arguments)[*definition.variadic] = std::move(joined);
    return true;
  }

  static Tokens Substituted(const std::vector<std::string>& body, const Arguments& arguments,
                            const Arguments& expanded, const std::set<std::string>& inside) {
    Tokens found;
    const auto add = [&](const Tokens& argument) {
      for (Token token : argument) {
        token.hidden.insert(inside.begin(), inside.end());
        found.push_back(std::move(token));
      }
    };
    std::string_view before;
    for (size_t i = 0; i < body.size(); ++i) {
      const std::string& text = body[i];
      const size_t next = Solid(body, i + 1);
      const std::string_view behind = next < body.size() ? std::string_view(body[next]) : "";
      const bool is_blank = IsSpace(std::string_view(text));
      const auto argument = arguments.find(text);
      if (IsStringify(text) && arguments.count(std::string(behind)) != 0) {
        // It belongs to the argument.
      } else if (argument == arguments.end()) {
        found.push_back({text, inside});
      } else if (IsStringify(before)) {
        found.push_back({Quoted(argument->second), inside});
      } else if (IsPaste(before) || IsPaste(behind)) {
        add(argument->second);
        if (argument->second.empty()) found.push_back({});
      } else {
        add(expanded.at(text));
      }
      if (!is_blank) before = text;
    }
    return found;
  }

  static std::string Quoted(const Tokens& tokens) {
    std::string text = "\"";
    for (const Token& token : tokens) {
      if (IsSpace(std::string_view(token.text))) {
        text += ' ';
        continue;
      }
      for (const char c : token.text) {
        if (c == '\\' || c == '"') text += '\\';
        text += c;
      }
    }
    return text + '"';
  }

  // Join the operands of ##.
  static Tokens Pasted(const Tokens& tokens) {
    Tokens found;
    bool joining = false;
    for (const Token& token : tokens) {
      const bool is_blank = IsSpace(std::string_view(token.text));
      if (IsPaste(token.text) && !found.empty()) {
        while (!found.empty() && IsSpace(std::string_view(found.back().text))) found.pop_back();
        joining = true;
      } else if (joining && is_blank) {
        continue;
      } else if (joining && !found.empty()) {
        Token& left = found.back();
        left.text += token.text;
        std::set<std::string> both;
        std::set_intersection(left.hidden.begin(), left.hidden.end(), token.hidden.begin(),
                              token.hidden.end(), std::inserter(both, both.end()));
        left.hidden = std::move(both);
        joining = false;
      } else {
        found.push_back(token);
        joining = false;
      }
    }
    found.erase(std::remove_if(found.begin(), found.end(),
                               [](const Token& token) { return token.text.empty(); }),
                found.end());
    return found;
  }

  const Definitions& definitions_;
  int steps_ = 0;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
