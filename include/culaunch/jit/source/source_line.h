// The name of a source for NVRTC.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "../../version.h"
#include "../base/json_text.h"
#include "characters.h"
#include "scan.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// The beginning of the line after a place; spliced lines count as one.
inline size_t NextLine(std::string_view text, size_t at) {
  for (size_t end; (end = text.find('\n', at)) != kNowhere; at = end + 1) {
    const std::string_view line = Stripped(text.substr(at, end - at));
    if (line.empty() || line.back() != '\\') return end + 1;
  }
  return text.size();
}

// NVRTC looks for quoted includes in the directory of the program's name, or in the current one if
// the name has no directory. Therefore the name has a directory, and #line sets the plain name for
// messages, __FILE__ and line tables. #line comes after the includes if a precompiled header must
// contain them.
inline std::string WithLine(std::string_view text, std::string_view name, bool after_includes) {
  size_t start = 0;
  if (after_includes) {
    for (const FileName& included : ScanText(text).names) start = NextLine(text, included.end);
  }
  if (start != 0 && start == text.size()) return std::string(text);
  const auto lines =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(start), '\n');
  std::string named(text.substr(0, start));
  named.append("#line ").append(JsonText().Integer(lines + 1).text()).append(" \"");
  for (const char c : name) {
    if (c == '\\' || c == '"') named += '\\';
    named += c;
  }
  return named.append("\"\n").append(text.substr(start));
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
