// The rules that a parameter's type, as an image spells it, sets for its arguments.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argument.h"
#include "array_argument.h"
#include "demangle.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// A parameter's type by its name. An uncertain type is unknown, and accepts every argument of its
// size: a wrong claim would refuse a good argument.
class ParameterType {
 public:
  ParameterType() = default;
  explicit ParameterType(std::string text)
      : text_(std::move(text)), kind_(Classify(Unqualified(text_))) {
    if (kind_ == Kind::kPointer) ReadPointee();
  }

  // As it is spelled; empty if the image does not say.
  const std::string& text() const noexcept { return text_; }

  bool IsPointer() const noexcept { return kind_ == Kind::kPointer; }
  // For a pointer: its element type, if that is a number of known size; else of 0 bits.
  ElementType element() const noexcept { return element_; }
  // For a pointer: whether the pointee is known to be const, or known not to be.
  bool PointsToConst() const noexcept { return is_plain_ && is_const_; }
  bool PointsToMutable() const noexcept { return is_plain_ && !is_const_; }

  // Whether an argument of the same size may fit it. An address may be passed as an integer
  // (CUdeviceptr), and a structure as the value that it wraps.
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

  // Where the list of parameters begins in the name of a function.
  static size_t OpeningOfLastParenthesis(const std::string& text) {
    if (text.empty() || text.back() != ')') return std::string::npos;
    int depth = 0;
    for (size_t i = text.size(); i-- > 0;) {
      if (text[i] == ')') ++depth;
      if (text[i] == '(' && --depth == 0) return i;
    }
    return std::string::npos;
  }

 private:
  enum class Kind { kUnknown, kPointer, kInteger, kFloat, kHalf, kStructure };

  static Kind Classify(const std::string& text) {
    if (text.empty()) return Kind::kUnknown;
    const bool is_plain = text.find_first_of("(<[{&") == std::string::npos;
    if (Words(text).back().back() == '*' && text.find('(') == std::string::npos)
      return Kind::kPointer;
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

  // Without the words at its end that qualify the pointer itself.
  static std::string Unqualified(const std::string& text) {
    std::vector<std::string> words = Words(text);
    while (words.size() > 1 &&
           (words.back() == "const" || words.back() == "volatile" || words.back() == "restrict" ||
            words.back() == "__restrict" || words.back() == "__restrict__")) {
      words.pop_back();
    }
    std::string joined;
    for (const std::string& word : words) {
      joined += (joined.empty() || word.front() == '*' ? "" : " ") + word;
    }
    return joined;
  }

  // Read "float const*": the type that is pointed to.
  void ReadPointee() {
    std::string pointee = Unqualified(text_);
    const size_t star = pointee.find_last_of('*');
    pointee.erase(star == std::string::npos ? 0 : star);
    is_plain_ = pointee.find_first_of("*&(<[{") == std::string::npos;
    if (!is_plain_) return;
    std::string name;
    for (const std::string& word : Words(pointee)) {
      if (word == "const") {
        is_const_ = true;
      } else if (word != "struct" && word != "volatile") {
        name += (name.empty() ? "" : " ") + word;
      }
    }
    element_ = ElementNamed(name);
  }

  // The elements that an array of DLPack can have, by the names of their types. As Python's
  // culaunch._launch.signatures.parameter_type has them, which a test compares.
  static ElementType ElementNamed(std::string name) {
    if (name.compare(0, 5, "std::") == 0) name.erase(0, 5);
    struct Named {
      const char* name;
      uint8_t code, bits;
    };
    static constexpr Named kNamed[] = {
        {"float", 2, 32},
        {"double", 2, 64},
        {"__half", 2, 16},
        {"half", 2, 16},
        {"_Float16", 2, 16},
        {"__nv_bfloat16", 4, 16},
        {"nv_bfloat16", 4, 16},
        {"__nv_fp8_e4m3", 10, 8},
        {"__nv_fp8_e5m2", 12, 8},
        {"__nv_fp8_e8m0", 14, 8},
        {"bool", 6, 8},
        {"signed char", 0, 8},
        {"unsigned char", 1, 8},
        {"int8_t", 0, 8},
        {"uint8_t", 1, 8},
        {"int16_t", 0, 16},
        {"uint16_t", 1, 16},
        {"int32_t", 0, 32},
        {"uint32_t", 1, 32},
        {"int64_t", 0, 64},
        {"uint64_t", 1, 64},
        {"size_t", 1, 64},
        {"uintptr_t", 1, 64},
        {"ptrdiff_t", 0, 64},
        {"intptr_t", 0, 64},
        {"char8_t", 1, 8},
        {"char16_t", 1, 16},
        {"char32_t", 1, 32},
        {"wchar_t", 0, 32},
        {"cudaTextureObject_t", 1, 64},
        {"cudaSurfaceObject_t", 1, 64},
    };
    ElementType type;
    for (const Named& one : kNamed) {
      if (name == one.name) type.code = one.code, type.bits = one.bits;
    }
    if (type.bits != 0 || name.empty()) return type;
    // "long unsigned int" and "unsigned long" are one type: the words may come in any order.
    type.bits = 32;
    for (const std::string& word : Words(name)) {
      if (word == "unsigned") {
        type.code = 1;
      } else if (word == "short") {
        type.bits = 16;
      } else if (word == "long") {
        type.bits = 64;
      } else if (word != "int" && word != "signed") {
        return {};
      }
    }
    return type;
  }

  // "const float *const" is four words: a star is one of the word before it.
  static std::vector<std::string> Words(const std::string& text) {
    std::vector<std::string> words;
    bool is_new = true;
    for (const char c : text) {
      if (c != ' ') {
        if (is_new) words.emplace_back();
        words.back() += c;
      }
      is_new = c == ' ' || c == '*';
    }
    return words;
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

  static std::string Trimmed(const std::string& text) {
    const size_t first = text.find_first_not_of(' ');
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
  }

  std::string text_;
  Kind kind_ = Kind::kUnknown;
  ElementType element_;
  bool is_plain_ = false;  // of a pointer: its target has a name, which can be parsed
  bool is_const_ = false;
};

CULAUNCH_NAMESPACE_END
