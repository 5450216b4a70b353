// The kinds of characters for a scan. Texts are bytes: each byte of a letter outside of ASCII
// counts as a letter.
#pragma once

#include <string_view>

#include "../../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
constexpr bool IsWord(char c) { return IsLetter(c) || IsDigit(c); }
// Compilers allow a dollar in a name.
constexpr bool IsNamePart(char c) { return IsWord(c) || c == '$'; }
constexpr bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
// The characters that compilers treat as blanks within a line. A carriage return is one, too.
// Before a line feed it belongs to the end of the line, and otherwise the compiler decides (see
// Mode).
constexpr bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\f' || c == '\v' || c == '\r' || c == '\0';
}

inline std::string_view Stripped(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

inline bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// The name at the front of a text; empty if there is none.
inline std::string_view LeadingName(std::string_view text) {
  if (text.empty() || !IsLetter(text.front())) return {};
  size_t end = 1;
  while (end < text.size() && IsNamePart(text[end])) ++end;
  return text.substr(0, end);
}

inline bool HasName(std::string_view text) {
  for (const char c : text) {
    if (IsLetter(c)) return true;
  }
  return false;
}

// Call visit(name) for each name in a text, digits in front of them left out.
template <class Visit>
void ForEachName(std::string_view text, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const std::string_view name = LeadingName(text.substr(at));
    if (!name.empty()) visit(name);
    at += name.empty() ? 1 : name.size();
  }
}

// Whether visit(word) is true for a word in a text. It depends on the compiler whether a dollar and
// which characters past ASCII belong to a word. Therefore words are visited with and without them.
template <class Visit>
bool AnyWord(std::string_view text, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    size_t plain = at;  // where the last stretch without them begins
    while (end < text.size() && IsNamePart(text[end])) {
      if (text[end] == '$' || static_cast<unsigned char>(text[end]) >= 0x80) {
        if (end > plain && visit(text.substr(plain, end - plain))) return true;
        plain = end + 1;
      }
      ++end;
    }
    if (end > at && visit(text.substr(at, end - at))) return true;
    if (plain != at && end > plain && visit(text.substr(plain, end - plain))) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
