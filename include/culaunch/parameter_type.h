// What a parameter's type, as an image spells it, says of the arguments that fit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argument.h"
#include "demangle.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// A parameter's type by its name. What is not certain is unknown, and takes every argument of its
// size: a wrong claim would refuse a good one.
class ParameterType {
 public:
  ParameterType() = default;
  explicit ParameterType(std::string text) : text_(std::move(text)), kind_(Classify(text_)) {}

  // As it is spelled; empty where the image does not say.
  const std::string& text() const noexcept { return text_; }

  // Whether an argument of the same size can be meant for it. An address may come as an integer
  // (CUdeviceptr); a structure may stand for whatever it wraps.
  bool Takes(ArgumentKind argument) const noexcept {
    switch (kind_) {
      case Kind::kPointer:
        return argument != ArgumentKind::kInteger && argument != ArgumentKind::kFloat;
      case Kind::kInteger:
        return argument != ArgumentKind::kPointer && argument != ArgumentKind::kFloat;
      case Kind::kFloat:
        return argument == ArgumentKind::kFloat || argument == ArgumentKind::kStructure;
      case Kind::kStructure:
        return argument == ArgumentKind::kStructure;
      case Kind::kHalf:
        return argument == ArgumentKind::kFloat || argument == ArgumentKind::kStructure;
      case Kind::kUnknown:
        break;
    }
    return true;
  }

  // The types in the name of a function, if it is a mangled one that can be read.
  static std::vector<ParameterType> OfMangled(const std::string& name) {
    if (name.compare(0, 2, "_Z") != 0) return {};
    const std::string text = Demangle(name);
    const size_t open = OpeningOfLastParenthesis(text);
    std::vector<ParameterType> types;
    if (open == std::string::npos) return types;
    int depth = 0;
    size_t start = open + 1;
    for (size_t i = start; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
      if (c == '>' || c == ']' || c == '}' || c == ')') --depth;
      if ((c == ',' && depth == 0) || depth < 0) {
        types.emplace_back(Trimmed(text.substr(start, i - start)));
        start = i + 1;
      }
    }
    return types;
  }

 private:
  enum class Kind { kUnknown, kPointer, kInteger, kFloat, kHalf, kStructure };

  static Kind Classify(const std::string& text) {
    if (text.empty()) return Kind::kUnknown;
    const char last = text.back();
    const bool is_plain = text.find_first_of("(<[{&") == std::string::npos;
    if (last == '*' && text.find('(') == std::string::npos) return Kind::kPointer;
    if (!is_plain) return Kind::kUnknown;
    std::string words = text;
    if (words.compare(0, 6, "const ") == 0) words.erase(0, 6);
    for (const char* name : {"float", "double"}) {
      if (words == name) return Kind::kFloat;
    }
    for (const char* name : {"__half", "__nv_bfloat16"}) {
      if (words == name) return Kind::kHalf;
    }
    for (const char* name :
         {"bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int",
          "unsigned int", "long", "unsigned long", "long long", "unsigned long long"}) {
      if (words == name) return Kind::kInteger;
    }
    return IsVector(words) ? Kind::kStructure : Kind::kUnknown;
  }

  // CUDA's own small structures: "float2", "uchar4", "__half2".
  static bool IsVector(const std::string& name) {
    for (const char* whole : {"__half2", "__nv_bfloat162", "dim3"}) {
      if (name == whole) return true;
    }
    if (name.empty() || name.back() < '1' || name.back() > '4') return false;
    const std::string base = name.substr(0, name.size() - 1);
    for (const char* element : {"char", "uchar", "short", "ushort", "int", "uint", "long", "ulong",
                                "longlong", "ulonglong", "float", "double"}) {
      if (base == element) return true;
    }
    return false;
  }

  static size_t OpeningOfLastParenthesis(const std::string& text) {
    if (text.empty() || text.back() != ')') return std::string::npos;
    int depth = 0;
    for (size_t i = text.size(); i-- > 0;) {
      if (text[i] == ')') ++depth;
      if (text[i] == '(' && --depth == 0) return i;
    }
    return std::string::npos;
  }

  static std::string Trimmed(const std::string& text) {
    const size_t first = text.find_first_not_of(' ');
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
  }

  std::string text_;
  Kind kind_ = Kind::kUnknown;
};

CULAUNCH_NAMESPACE_END
