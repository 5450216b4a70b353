// Parameter types of extern "C" kernels, whose names do not spell them: from the declaration, else
// from the compiler, else each parameter's class from the PTX.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../demangle.h"
#include "../parameter_type.h"
#include "../version.h"
#include "source/characters.h"
#include "source/declarations.h"
#include "store/image.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

constexpr const char* kProbe = "culaunch_signature";

// The kernels of a PTX text that NVRTC wrote, with the types of their parameters where PTX tells.
class PtxKernels {
 public:
  explicit PtxKernels(std::string_view ptx) : text_(ptx) {
    for (size_t at = 0; (at = text_.find(".entry", at)) != kNowhere;) {
      const size_t line = text_.rfind('\n', at) + 1;  // 0 if there is none
      const bool is_comment = text_.substr(line, at - line).find("//") != kNowhere;
      at += 6;
      if (is_comment || at >= text_.size() || !IsSpace(text_[at])) continue;
      at_ = at;
      std::string name = Next();
      Image::Signature types;
      ReadParameters(&types);
      found.emplace_back(std::move(name), std::move(types));
      at = std::max(at, at_);
    }
  }

  std::vector<std::pair<std::string, Image::Signature>> found;

 private:
  std::string Next() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
    if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return Next();
    }
    const auto is_part = [](char c) { return IsNamePart(c) || c == '.' || c == '%'; };
    size_t end = at_;
    while (end < text_.size() && is_part(text_[end]) && (end == at_ || text_[end] != '.')) ++end;
    if (end == at_ && end < text_.size()) ++end;
    std::string token(text_.substr(at_, end - at_));
    at_ = end;
    return token;
  }

  void ReadParameters(Image::Signature* types) {
    if (Next() != "(") return;
    for (std::string token = Next(); token == ".param" || token == ","; token = Next()) {
      if (token == ",") continue;
      std::string type;
      bool is_pointer = false;
      bool is_wide = false;
      bool is_vector = false;
      std::string word = Next();
      for (; !word.empty() && word[0] == '.'; word = Next()) {
        if (word == ".align") {
          Next();
        } else if (word == ".ptr") {
          is_pointer = true;
        } else if (word == ".v2" || word == ".v4" || word == ".v8") {
          is_vector = true;
        } else if (word != ".const" && word != ".global" && word != ".local" && word != ".shared") {
          type = TypeOf(word);
          is_wide = word.size() == 4 && word.compare(2, 2, "64") == 0;
        }
      }
      const size_t before = at_;
      const bool is_array = Next() == "[";
      if (is_array) {
        while (at_ < text_.size() && Next() != "]") {
        }
      } else {
        at_ = before;
      }
      if (!is_array && is_pointer) {
        type = is_wide ? "void*" : "";
      } else if (is_array || is_vector) {
        type.clear();
      }
      types->push_back(std::move(type));
    }
  }

  // PTX says less about a type than C: an uncertain type is unknown.
  static std::string TypeOf(std::string_view word) {
    static constexpr const char* const kTypes[][2] = {{".f16", "__half"},
                                                      {".f16x2", "__half2"},
                                                      {".bf16", "__nv_bfloat16"},
                                                      {".bf16x2", "__nv_bfloat162"},
                                                      {".f32", "float"},
                                                      {".f64", "double"},
                                                      {".s8", "signed char"},
                                                      {".s16", "short"},
                                                      {".s32", "int"},
                                                      {".s64", "long long"}};
    for (const auto& one : kTypes) {
      if (word == one[0]) return one[1];
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
};

// "float const*" as a signature spells it: "const float*".
inline std::string WithConstFirst(std::string type) {
  const size_t found = type.find(" const");
  const size_t end = type.find_first_of("*&");
  const bool is_plain = type.find_first_of("<([") == std::string::npos;
  if (found == std::string::npos || !is_plain || found + 6 != std::min(end, type.size())) {
    return type;
  }
  return "const " + type.erase(found, 6);
}

// The types in the lowered name of probe<decltype(kernel)>, which spells the kernel's in full.
inline std::optional<Image::Signature> SpelledTypes(const std::string& lowered) {
  const std::string start = "_Z18" + std::string(kProbe) + "IF";
  static constexpr std::string_view kEnd = "EEvv";
  if (!StartsWith(lowered, start) || lowered.size() < start.size() + kEnd.size() + 1 ||
      std::string_view(lowered).substr(lowered.size() - kEnd.size()) != kEnd) {
    return std::nullopt;
  }
  std::string params = lowered.substr(start.size(), lowered.size() - start.size() - kEnd.size());
  if (params[0] == 'Y') params.erase(0, 1);
  if (params.empty() || params[0] != 'v') return std::nullopt;
  // A member of a scope with the template's name: back references then count the same.
  const std::string scope = "18" + std::string(kProbe);
  Image::Signature types;
  for (const ParameterType& one :
       ParameterType::OfMangled("_ZN" + scope + "1fE" + params.substr(1))) {
    if (one.text() != "void") types.push_back(WithConstFirst(one.text()));
  }
  return types;
}

// Compiles the source with a text behind it, and gives for kernels the lowered names of
// expressions; nothing if that fails. The front end of the compiler suffices.
using Probe = std::function<std::map<std::string, std::string>(
    const std::string& text, const std::map<std::string, std::string>& expressions)>;

// The parameter types of the kernels in a compile's PTX that are not mangled. Most are built-in
// types and can be read off the declaration. For others, a template is added to a copy of the
// source. The lowered name of probe<decltype(kernel)> spells the kernel's type in full. If this
// fails, the PTX still tells each parameter's class.
//
// probe: null if it is too expensive: reading CUB twice takes seconds.
inline std::vector<std::pair<std::string, Image::Signature>> KernelSignatures(
    const std::string& ptx, const std::string& source, const Probe& probe) {
  std::vector<std::pair<std::string, Image::Signature>> found;
  std::vector<std::string> to_probe;
  std::map<std::string, Image::Signature> known;
  std::optional<Declarations> declarations;
  for (auto& kernel : PtxKernels(ptx).found) {
    if (StartsWith(kernel.first, "_Z")) continue;
    if (!declarations) declarations.emplace(source);
    if (auto types = declarations->TypesOf(kernel.first)) {
      known[kernel.first] = *std::move(types);
    } else {
      to_probe.push_back(kernel.first);
    }
    found.push_back(std::move(kernel));
  }
  if (probe && !to_probe.empty()) {
    const std::string name = kProbe;
    const std::string text =
        "\n#line 1 \"" + name + "\"\ntemplate <class> __global__ void " + name + "() {}\n";
    std::map<std::string, std::string> expressions;
    for (const std::string& one : to_probe) expressions[one] = name + "<decltype(" + one + ")>";
    std::map<std::string, std::string> lowered = probe(text, expressions);
    if (lowered.empty() && to_probe.size() > 1) {
      // One that cannot be named from the outside spoils it for all: ask for each by itself.
      for (const auto& one : expressions) lowered.merge(probe(text, {one}));
    }
    for (const auto& [kernel, spelled] : lowered) {
      if (auto types = SpelledTypes(spelled)) known[kernel] = *std::move(types);
    }
  }
  for (auto& [kernel, types] : found) {
    const auto better = known.find(kernel);
    if (better != known.end() && better->second.size() == types.size()) types = better->second;
  }
  return found;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
