// Parameter types of a kernel as its source declares them, if that is beyond doubt. Only
// built-in types, CUDA's own, and pointers to them are understood; anything else, a macro or two
// declarations that differ are left to the compiler.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../version.h"
#include "characters.h"
#include "phases.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// Reads the declarations of one source.
class Declarations {
 public:
  explicit Declarations(std::string_view source) : text_(WithoutComments(source)) { ReadDefines(); }

  // The parameter types of a kernel, or none if the source is ambiguous.
  std::optional<std::vector<std::string>> TypesOf(const std::string& kernel) const {
    std::set<std::string> found;
    static constexpr std::string_view kMark = "__global__";
    for (size_t at = 0; (at = text_.find(kMark, at)) != kNowhere;) {
      const size_t start = at + kMark.size();
      size_t end = 0;
      std::string params;
      const bool is_whole = start >= text_.size() || !IsWord(text_[start]);
      if (is_whole && ReadHead(start, kernel, &params, &end)) {
        found.insert(std::move(params));
        at = end;
      } else {
        at = start;
      }
    }
    if (found.size() != 1) return std::nullopt;
    const std::string params(Stripped(*found.begin()));
    if (params.empty() || params == "void") return std::vector<std::string>();
    std::vector<std::string> types;
    for (size_t start = 0; start <= params.size();) {
      const size_t end = std::min(params.find(',', start), params.size());
      const std::vector<std::string> tokens = Tokens(params.substr(start, end - start));
      start = end + 1;
      for (const std::string& token : tokens) {
        if (defines_.count(token) != 0) return std::nullopt;
      }
      std::optional<std::string> type = TypeOf(tokens);
      if (!type) return std::nullopt;
      types.push_back(*std::move(type));
    }
    return types;
  }

 private:
  static std::string WithoutComments(std::string_view source) {
    std::string text;
    for (size_t at = 0; at < source.size();) {
      const std::string_view two = source.substr(at, 2);
      size_t end = kNowhere;
      if (two == "//") end = std::min(source.find('\n', at), source.size());
      if (two == "/*" && source.find("*/", at + 2) != kNowhere) {
        end = source.find("*/", at + 2) + 2;
      }
      text += end == kNowhere ? source[at] : ' ';
      at = end == kNowhere ? at + 1 : end;
    }
    return text;
  }

  void ReadDefines() {
    for (size_t line = 0; line < text_.size();) {
      const size_t next = std::min(text_.find('\n', line), text_.size());
      std::string_view rest = std::string_view(text_).substr(line, next - line);
      line = next + 1;
      const auto skip = [&] {
        while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\t')) rest.remove_prefix(1);
      };
      skip();
      if (!StartsWith(rest, "#")) continue;
      rest.remove_prefix(1);
      skip();
      if (!StartsWith(rest, "define") || rest.size() < 7 || (rest[6] != ' ' && rest[6] != '\t')) {
        continue;
      }
      rest.remove_prefix(6);
      skip();
      size_t size = 0;
      while (size < rest.size() && IsWord(rest[size])) ++size;
      if (size != 0) defines_.emplace(rest.substr(0, size));
    }
  }

  // Read from behind __global__ to the end of the parameters of a kernel.
  bool ReadHead(size_t at, const std::string& kernel, std::string* params, size_t* end) const {
    for (;;) {
      at = text_.find_first_of(";{}()", at);
      if (at == kNowhere || text_[at] != '(') return false;
      size_t name = at;
      while (name > 0 && IsSpace(text_[name - 1])) --name;
      const std::string_view before = std::string_view(text_).substr(0, name);
      const auto ends_with = [&](std::string_view word) {
        return before.size() >= word.size() && before.substr(before.size() - word.size()) == word;
      };
      const size_t close = text_.find_first_of(";{}()", at + 1);
      if (ends_with("__launch_bounds__")) {
        const size_t inner = text_.find_first_of("()", at + 1);
        if (inner == kNowhere || text_[inner] != ')') return false;
        at = inner + 1;
        continue;
      }
      const size_t start = name - std::min(name, kernel.size());
      if (!ends_with(kernel) || (start > 0 && IsWord(text_[start - 1]))) return false;
      if (close == kNowhere || text_[close] != ')') return false;
      *params = text_.substr(at + 1, close - at - 1);
      *end = close + 1;
      return true;
    }
  }

  static std::vector<std::string> Tokens(std::string_view text) {
    std::vector<std::string> found;
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && IsWord(text[end])) ++end;
      if (end == at) ++end;
      if (!IsSpace(text[at])) found.emplace_back(text.substr(at, end - at));
      at = end;
    }
    return found;
  }

  // The type of `const float* __restrict__ x` as a mangled name would spell it.
  static std::optional<std::string> TypeOf(const std::vector<std::string>& given) {
    std::vector<std::string> tokens;
    for (const std::string& token : given) {
      const bool is_dropped =
          token == "__restrict__" || token == "__restrict" || token == "__grid_constant__";
      if (!is_dropped) tokens.push_back(token);
    }
    const auto first = std::find(tokens.begin(), tokens.end(), "*");
    const auto stars = static_cast<size_t>(std::count(first, tokens.end(), "*"));
    size_t names = 0;
    // Behind the stars only a name may come, and a const of the parameter itself.
    for (auto token = first; token != tokens.end(); ++token) {
      if (static_cast<size_t>(token - first) < stars) continue;
      if (*token == "*") return std::nullopt;
      if (*token != "const") ++names;
    }
    if (names > 1) return std::nullopt;
    const bool is_constant = std::find(tokens.begin(), first, "const") != first;
    std::vector<std::string> base(tokens.begin(), first);
    base.erase(std::remove(base.begin(), base.end(), "const"), base.end());
    std::optional<std::string> kind = BaseType(base);
    if (!kind && stars == 0 && base.size() > 1) {
      base.pop_back();
      kind = BaseType(base);
    }
    if (!kind || (*kind == "void" && stars == 0)) return std::nullopt;
    return (is_constant && stars != 0 ? "const " : "") + *kind + std::string(stars, '*');
  }

  static std::optional<std::string> BaseType(const std::vector<std::string>& words) {
    if (words.size() == 1) {
      const std::string& word = words[0];
      for (const char* const plain : {"float", "double", "bool", "void"}) {
        if (word == plain) return word;
      }
      if (IsOwn(word)) return word;
      static constexpr const char* const kAliases[][2] = {{"half", "__half"},
                                                          {"half2", "__half2"},
                                                          {"nv_bfloat16", "__nv_bfloat16"},
                                                          {"nv_bfloat162", "__nv_bfloat162"},
                                                          {"int8_t", "signed char"},
                                                          {"uint8_t", "unsigned char"},
                                                          {"int16_t", "short"},
                                                          {"uint16_t", "unsigned short"},
                                                          {"int32_t", "int"},
                                                          {"uint32_t", "unsigned int"},
                                                          {"int64_t", "long"},
                                                          {"uint64_t", "unsigned long"},
                                                          {"size_t", "unsigned long"}};
      for (const auto& alias : kAliases) {
        if (word == alias[0]) return std::string(alias[1]);
      }
    }
    return Integer(words);
  }

  static std::optional<std::string> Integer(const std::vector<std::string>& words) {
    static constexpr const char* const kWords[] = {"unsigned", "signed", "char",
                                                   "short",    "long",   "int"};
    std::array<int, 6> counts{};
    for (const std::string& word : words) {
      const auto known = std::find(std::begin(kWords), std::end(kWords), word);
      if (known == std::end(kWords)) return std::nullopt;
      ++counts[static_cast<size_t>(known - std::begin(kWords))];
    }
    const auto [is_unsigned, is_signed, chars, shorts, longs, ints] = counts;
    if (is_unsigned > 1 || is_signed > 1 || is_unsigned + is_signed > 1 || ints > 1) {
      return std::nullopt;
    }
    const std::string prefix = is_unsigned != 0 ? "unsigned " : "";
    if (chars == 1 && shorts + longs + ints == 0) {
      return (is_signed != 0 ? "signed " : prefix) + "char";
    }
    if (chars != 0 || shorts > 1 || longs > 2 || (shorts != 0 && longs != 0)) return std::nullopt;
    if (shorts == 1) return prefix + "short";
    if (longs == 1) return prefix + "long";
    if (longs == 2) return prefix + "long long";
    return is_unsigned + is_signed + ints != 0 ? std::optional<std::string>(prefix + "int")
                                               : std::nullopt;
  }

  static bool IsOwn(const std::string& word) {
    for (const char* const one : {"__half", "__half2", "__nv_bfloat16", "__nv_bfloat162"}) {
      if (word == one) return true;
    }
    if (word.empty() || word.back() < '1' || word.back() > '4') return false;
    std::string element = word.substr(0, word.size() - 1);
    if (element == "float" || element == "double") return true;
    if (!element.empty() && element[0] == 'u') element.erase(0, 1);
    for (const char* const one : {"char", "short", "int", "long", "longlong"}) {
      if (element == one) return true;
    }
    return false;
  }

  std::string text_;
  std::set<std::string> defines_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
