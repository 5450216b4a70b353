// The references of one text to other files, for every way in which a compiler could read it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../../version.h"
#include "characters.h"
#include "directives.h"
#include "phases.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// Texts in the order in which they were met, each once.
class OrderedTexts {
 public:
  bool Add(std::string text) {
    if (!known_.insert(text).second) return false;
    texts_.push_back(std::move(text));
    return true;
  }
  bool Has(const std::string& text) const { return known_.count(text) != 0; }
  const std::vector<std::string>& texts() const noexcept { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::unordered_set<std::string> known_;
};

// The findings in one text.
struct Scan {
  std::vector<FileName> names;  // the files that it names, in #include, __has_include and the like
  std::unordered_set<std::string> next_names;  // which of them are looked for behind its directory
  std::vector<std::string> doubtful;    // names for a compiler that reads it in an unusual way
  std::vector<std::string> computed;    // the text after #include if it is not a name: macros
  std::vector<std::string> conditions;  // the text after #if and #elif
  std::vector<std::string> defines;     // the text after #define

  // Whether the text names no file, whichever macros are defined.
  bool IsEmpty() const noexcept {
    return names.empty() && doubtful.empty() && computed.empty() && conditions.empty();
  }
};

// Find the references of a text to other files. Compilers and dialects differ in what a line is, in
// trigraphs, raw strings and quotes that are not closed. A text in which that matters is read in
// all these ways, and every result counts.
inline Scan ScanText(std::string_view text) {
  Scan scan;
  OrderedTexts known, doubtful, computed, conditions, defines;
  const auto take = [&](std::vector<Directive> directives, bool is_usual) {
    for (Directive& one : directives) {
      const bool is_next = one.kind == DirectiveKind::kIncludeNext && one.has_name;
      if (is_next) scan.next_names.insert(one.name.spelled);
      std::string rest(Stripped(one.rest));
      if (one.kind == DirectiveKind::kCondition) {
        if (HasName(rest)) conditions.Add(std::move(rest));
      } else if (one.kind == DirectiveKind::kDefine) {
        defines.Add(std::move(rest));
      } else if (!one.has_name) {
        computed.Add(std::move(rest));
      }
      if (one.has_name) one.questions.assign(1, std::move(one.name));
      for (FileName& name : one.questions) {
        if (is_usual) {
          known.Add(name.spelled);
          scan.names.push_back(std::move(name));
        } else if (!known.Has(name.spelled)) {
          doubtful.Add(std::move(name.spelled));
        }
      }
    }
  };
  DirectiveReader usual(text, Mode{});
  take(usual.All(), true);
  for (const Mode& mode : OtherModes(text, usual.raw_strings(), usual.open_quotes())) {
    take(DirectiveReader(text, mode).All(), false);
  }
  scan.doubtful = doubtful.texts();
  scan.computed = computed.texts();
  scan.conditions = conditions.texts();
  scan.defines = defines.texts();
  return scan;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
