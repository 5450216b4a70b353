// Every file name that a macro could expand to, whichever of its definitions is in force.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../../version.h"
#include "characters.h"
#include "expansion.h"
#include "phases.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

using Words = std::unordered_set<std::string>;

inline bool IsQuestion(std::string_view token) {
  return token == "__has_include_next" || token == "__has_include" || token == "__has_embed";
}

// The preprocessing tokens of a text; blanks are tokens, too.
inline std::vector<std::string> SplitTokens(std::string_view text) {
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const char c = rest[0];
    size_t size = LeadingName(rest).size();
    if (size == 0 && (c == '"' || c == '\'')) {
      size_t end = 1;
      while (end < rest.size() && rest[end] != c) end += rest[end] == '\\' ? 2 : 1;
      size = end < rest.size() ? end + 1 : 1;
    } else if (size == 0 && (IsDigit(c) || (c == '.' && rest.size() > 1 && IsDigit(rest[1])))) {
      for (size = c == '.' ? 2 : 1; size < rest.size(); ++size) {
        const char next = size + 1 < rest.size() ? rest[size + 1] : '\0';
        const bool is_exponent = std::string_view("eEpP").find(rest[size]) != kNowhere;
        if (is_exponent && (next == '+' || next == '-')) {
          ++size;
        } else if (!IsWord(rest[size]) && rest[size] != '.') {
          break;
        }
      }
    } else if (size == 0 && IsSpace(c)) {
      while (size < rest.size() && IsSpace(rest[size])) ++size;
    } else if (size == 0) {
      size = 1;
      for (const std::string_view longer : {"##", "%:%:", "%:"}) {
        if (StartsWith(rest, longer)) {
          size = longer.size();
          break;
        }
      }
    }
    found.emplace_back(rest.substr(0, size));
    at += size;
  }
  return found;
}

// All definitions of all macros: each may be the one in force, or no definition is.
class Macros {
 public:
  // Add the definition after #define.
  void Add(std::string_view define) {
    while (!define.empty() && IsSpace(define.front())) define.remove_prefix(1);
    const std::string name(LeadingName(define));
    if (name.empty()) return;
    define.remove_prefix(name.size());
    Definition definition;
    const size_t closed = define.find_first_of("()", 1);
    if (!define.empty() && define[0] == '(' && closed != kNowhere && define[closed] == ')') {
      definition.has_parameters = true;
      ReadParameters(define.substr(1, closed - 1), &definition);
      define.remove_prefix(closed + 1);
    }
    definition.body = SplitTokens(Stripped(define));
    all_[name].insert(std::move(definition));
  }

  // The words, and the macros whose expansion can have one of them in it.
  Words LeadingTo(const std::vector<std::string>& words) const {
    std::unordered_map<std::string, Words> uses;
    for (const auto& [name, definitions] : all_) {
      for (const Definition& one : definitions) {
        for (const std::string& token : one.body) uses[token].insert(name);
      }
    }
    return Reached(words, uses);
  }

  // The names, as `"name` or `<name`, that `#include text` can mean; throws UnknownName if they
  // cannot be determined.
  std::set<std::string> Included(std::string_view text) const {
    std::set<std::string> found;
    for (const auto& tokens : Expand(SplitTokens(text))) found.merge(Named(tokens));
    return found;
  }

  // The names that the condition `#if text` can ask for through its macros; throws UnknownName.
  std::set<std::string> Asked(std::string_view text) {
    PrepareQuestions();
    const std::vector<std::string> tokens = SplitTokens(text);
    const Words& suspicious = CanPasteQuestion(tokens) ? *pasting_ : *questions_;
    std::set<std::string> found;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (suspicious.count(tokens[i]) == 0) continue;
      // Only the query, not the whole condition, which has more expansions.
      size_t end = i + 1;
      for (size_t next; (next = EndOfCall(tokens, end)) > end;) end = next;
      const std::vector<std::string> question(tokens.begin() + static_cast<std::ptrdiff_t>(i),
                                              tokens.begin() + static_cast<std::ptrdiff_t>(end));
      for (const auto& expanded : Expand(question)) found.merge(Questioned(expanded));
    }
    return found;
  }

 private:
  static void ReadParameters(std::string_view text, Definition* definition) {
    if (Stripped(text).empty()) return;
    for (size_t start = 0; start <= text.size();) {
      const size_t end = text.find(',', start) == kNowhere ? text.size() : text.find(',', start);
      definition->parameters.emplace_back(Stripped(text.substr(start, end - start)));
      start = end + 1;
    }
    const std::string last = definition->parameters.back();
    if (last.size() < 3 || last.compare(last.size() - 3, 3, "...") != 0) return;
    definition->parameters.pop_back();
    const std::string name(Stripped(std::string_view(last).substr(0, last.size() - 3)));
    definition->variadic = name.empty() ? "__VA_ARGS__" : name;
  }

  static Words Reached(const std::vector<std::string>& start,
                       const std::unordered_map<std::string, Words>& edges) {
    Words found(start.begin(), start.end());
    std::vector<std::string> todo(found.begin(), found.end());
    while (!todo.empty()) {
      const auto edge = edges.find(todo.back());
      todo.pop_back();
      if (edge == edges.end()) continue;
      for (const std::string& next : edge->second) {
        if (found.insert(next).second) todo.push_back(next);
      }
    }
    return found;
  }

  void PrepareQuestions() {
    if (questions_) return;
    questions_ = LeadingTo({"__has_include_next", "__has_include", "__has_embed"});
    pasting_ = LeadingTo({"__has_include_next", "__has_include", "__has_embed", "##", "%:%:"});
    // The words of each macro's own, which are not its parameters.
    for (const auto& [name, definitions] : all_) {
      Words& words = words_[name];
      for (const Definition& one : definitions) {
        const Words parameters(one.parameters.begin(), one.parameters.end());
        for (const std::string& token : one.body) {
          if (parameters.count(token) == 0) words.insert(token);
        }
      }
    }
  }

  // Whether __has_include and the like could be pasted together in a condition.
  bool CanPasteQuestion(const std::vector<std::string>& tokens) const {
    Words words = Reached(tokens, words_);
    if (words.count("##") == 0 && words.count("%:%:") == 0) return false;
    for (const std::string& question : *questions_) {
      const bool was_there = words.erase(question) != 0;
      if (IsJoined(question, words)) return true;
      if (was_there) words.insert(question);
    }
    return false;
  }

  static bool IsJoined(const std::string& word, const Words& parts) {
    std::vector<bool> reached(word.size() + 1);
    reached[0] = true;
    for (size_t end = 1; end <= word.size(); ++end) {
      for (size_t start = 0; start < end && !reached[end]; ++start) {
        reached[end] = reached[start] && parts.count(word.substr(start, end - start)) != 0;
      }
    }
    return reached[word.size()];
  }

  // Read the tokens where a file's name is expected.
  std::set<std::string> Named(const std::vector<std::string>& tokens) const {
    std::string joined;
    for (const std::string& token : tokens)
      joined += IsSpace(std::string_view(token)) ? " " : token;
    const std::string text(Stripped(joined));
    if (StartsWith(text, "\"")) {
      const size_t end = text.find('"', 1);
      return end == kNowhere ? std::set<std::string>() : std::set<std::string>{text.substr(0, end)};
    }
    if (StartsWith(text, "<") && text.find('>') != kNowhere) {
      const std::string name = text.substr(1, text.find('>') - 1);
      ForEachName(name, [&](std::string_view word) {
        if (CouldBeAnything(std::string(word))) throw UnknownName();
      });
      // Compilers keep the blanks between macros, or some of them.
      std::string bare;
      for (const char c : name) bare += c == ' ' ? "" : std::string(1, c);
      return {"<" + name, "<" + std::string(Stripped(name)), "<" + bare};
    }
    for (const std::string& token : tokens) {
      // __FILE__ is a file that was read already.
      if (token != "__FILE__" && CouldBeAnything(token)) throw UnknownName();
    }
    return {};
  }

  // A macro that the compiler defines could expand to anything.
  bool CouldBeAnything(const std::string& word) const {
    const bool is_reserved = (word.size() > 1 && word[0] == '_' &&
                              (word[1] == '_' || (word[1] >= 'A' && word[1] <= 'Z'))) ||
                             word == "unix" || word == "linux" || word == "i386";
    return is_reserved && all_.count(word) == 0;
  }

  std::set<std::string> Questioned(const std::vector<std::string>& tokens) const {
    std::set<std::string> found;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!IsQuestion(tokens[i])) continue;
      size_t start = Solid(tokens, i + 1);
      size_t end = tokens.size();
      if (start < tokens.size() && tokens[start] == "(") {
        end = EndOfCall(tokens, start) - 1;
        ++start;
      }
      if (end < start) end = start;
      found.merge(Named({tokens.begin() + static_cast<std::ptrdiff_t>(start),
                         tokens.begin() + static_cast<std::ptrdiff_t>(end)}));
    }
    return found;
  }

  std::set<std::vector<std::string>> Expand(const std::vector<std::string>& texts) const {
    Tokens tokens;
    for (const std::string& text : texts) tokens.push_back({text, {}});
    std::set<std::vector<std::string>> found;
    for (const Tokens& result : Expansion(all_).Results(tokens)) {
      std::vector<std::string> plain;
      for (const Token& token : result) plain.push_back(token.text);
      found.insert(std::move(plain));
    }
    return found;
  }

  Definitions all_;
  std::unordered_map<std::string, Words> words_;
  std::optional<Words> questions_;
  std::optional<Words> pasting_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
