// Find the directives of a text: comments are blanks, strings are not looked into.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../../version.h"
#include "characters.h"
#include "phases.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// A file's name in the text: `"name` or `<name`, and its place in the original.
struct FileName {
  std::string spelled;
  size_t start = 0;
  size_t end = 0;
};

enum class DirectiveKind { kInclude, kIncludeNext, kCondition, kDefine };

// One directive that says something about files, or that may.
struct Directive {
  DirectiveKind kind = DirectiveKind::kInclude;
  bool has_name = false;
  FileName name;     // the included file, if the text names it directly
  std::string rest;  // the rest of the line, with blanks for comments, where it is not
  std::vector<FileName> questions;  // the literal names in __has_include and the like
};

// Goes through a text in one mode.
class DirectiveReader {
 public:
  // The text must outlive it.
  DirectiveReader(std::string_view text, const Mode& mode)
      : lines_(text, mode), text_(lines_.text()), mode_(mode) {}

  bool raw_strings() const noexcept { return raw_strings_; }  // whether a raw string was met
  bool open_quotes() const noexcept { return open_quotes_; }  // or a quote that is not closed

  // The directives in their order.
  std::vector<Directive> All() {
    std::vector<Directive> found;
    // A byte order mark is not a character of the first line.
    size_t at = LineStart(StartsWith(text_, "\xef\xbb\xbf") ? 3 : 0);
    while (at != kNowhere) {
      const size_t hash = At(at) == '#' ? 1 : text_.compare(at, 2, "%:") == 0 ? 2 : 0;
      if (hash != 0) {
        Directive directive;
        if (Read(&(at += hash), &directive)) found.push_back(std::move(directive));
      }
      at = NextLine(at);
    }
    return found;
  }

 private:
  char At(size_t place) const { return place < text_.size() ? text_[place] : '\0'; }
  bool IsAt(size_t place, std::string_view what) const {
    return place <= text_.size() && text_.compare(place, what.size(), what) == 0;
  }

  // Go to the start of a line that may have a directive; nowhere at the end of the text.
  size_t NextLine(size_t at) {
    while (at < text_.size()) {
      const char c = text_[at];
      if (c == '\n') {
        // A line counts only if it begins with a directive or with a comment, behind which there
        // may be one.
        size_t start = at + 1;
        while (start < text_.size() && IsBlank(text_[start])) ++start;
        if (At(start) == '#' || IsAt(start, "%:") || IsAt(start, "/*")) return LineStart(start);
        ++at;
      } else if (c == '/' && (At(at + 1) == '/' || At(at + 1) == '*')) {
        at = SkipComment(at);
      } else if (c == '"' || c == '\'') {
        at = SkipLiteral(at);
      } else {
        ++at;
      }
    }
    return kNowhere;
  }

  // Go over blanks, comments and empty lines; give where a directive may be.
  size_t LineStart(size_t at) const {
    for (;;) {
      while (at < text_.size() && (IsBlank(text_[at]) || text_[at] == '\n')) ++at;
      if (!IsAt(at, "/*")) return at;
      const size_t end = text_.find("*/", at + 2);
      if (end == kNowhere) return kNowhere;
      at = end + 2;
    }
  }

  // Go over blanks and comments within a line.
  size_t SkipBlanks(size_t at) const {
    for (;;) {
      while (at < text_.size() && IsBlank(text_[at])) ++at;
      if (!IsAt(at, "/*")) return at;
      const size_t end = text_.find("*/", at + 2);
      if (end == kNowhere) return text_.size();
      at = end + 2;
    }
  }

  size_t SkipComment(size_t at) const {
    if (text_[at + 1] == '/') return text_.find('\n', at);
    const size_t end = text_.find("*/", at + 2);
    return end == kNowhere ? end : end + 2;
  }

  size_t SkipLiteral(size_t at) {
    const char quote = text_[at];
    if (quote == '"' && !mode_.no_raw_strings) {
      size_t end = 0;
      if (SkipRawString(at, &end)) return end;
    }
    if (quote == '\'' && IsInNumber(at)) return at + 1;  // it separates the digits
    for (size_t end = at + 1; end < text_.size() && text_[end] != '\n'; ++end) {
      if (text_[end] == quote) return end + 1;
      if (text_[end] == '\\' && ++end < text_.size() && text_[end] == '\n') break;
    }
    open_quotes_ = true;
    return mode_.open_quotes ? text_.find('\n', at) : at + 1;
  }

  bool IsInNumber(size_t at) const {
    constexpr size_t kLongest = 64;
    size_t start = at;
    while (start > 0 && at - start <= kLongest &&
           (IsWord(text_[start - 1]) || text_[start - 1] == '.' || text_[start - 1] == '\'')) {
      --start;
    }
    if (at - start > kLongest || (start > 0 && text_[start - 1] == '$')) return false;
    return start < at && (IsDigit(text_[start]) ||
                          (text_[start] == '.' && IsDigit(At(start + 1)) && start + 1 < at));
  }

  bool SkipRawString(size_t at, size_t* end) {
    size_t prefix = at;
    if (prefix == 0 || text_[--prefix] != 'R') return false;
    if (prefix >= 2 && text_.compare(prefix - 2, 2, "u8") == 0) {
      prefix -= 2;
    } else if (prefix >= 1 && std::string_view("uUL").find(text_[prefix - 1]) != kNowhere) {
      --prefix;
    }
    if (prefix > 0 && IsNamePart(text_[prefix - 1])) return false;
    size_t open = at + 1;
    while (open < text_.size() && std::string_view(" ()\\\t\v\f\n\"").find(text_[open]) == kNowhere)
      ++open;
    constexpr size_t kLongestMark = 16;
    if (At(open) != '(' || open - at - 1 > kLongestMark) return false;
    raw_strings_ = true;
    // Lines are not spliced within one: its end is looked for in the original text.
    const std::string mark = ")" + std::string(text_.substr(at + 1, open - at - 1)) + "\"";
    const size_t closed = lines_.original().find(mark, lines_.Physical(open + 1));
    *end = closed == kNowhere ? kNowhere : lines_.Logical(closed + mark.size() - 1) + 1;
    return true;
  }

  // Read the directive after a '#' and advance past it; false if it is not relevant.
  bool Read(size_t* at, Directive* directive) {
    *at = SkipBlanks(*at);
    size_t end = *at;
    if (end < text_.size() && !IsDigit(text_[end])) {
      while (end < text_.size() && IsNamePart(text_[end])) ++end;
    }
    const std::string_view word = text_.substr(*at, end - *at);
    *at = end;
    if (word == "include" || word == "include_next" || word == "import" || word == "embed") {
      directive->kind =
          word == "include_next" ? DirectiveKind::kIncludeNext : DirectiveKind::kInclude;
      const size_t start = SkipBlanks(end);
      const size_t size = NameSize(start);
      directive->has_name = size != 0;
      if (size != 0) {
        directive->name = Name(start, size);
        *at = start + size;
      } else {
        ReadRest(at, directive, false);
      }
      return true;
    }
    if (word != "if" && word != "elif" && word != "define") return false;
    directive->kind = word == "define" ? DirectiveKind::kDefine : DirectiveKind::kCondition;
    ReadRest(at, directive, true);
    return true;
  }

  // The size of "name" or <name> at a place, including the marks; 0 if there is none.
  size_t NameSize(size_t at) const {
    const char close = At(at) == '"' ? '"' : At(at) == '<' ? '>' : '\0';
    if (close == '\0' || at >= text_.size()) return 0;
    for (size_t end = at + 1; end < text_.size() && text_[end] != '\n'; ++end) {
      if (text_[end] == close) return end + 1 - at;
    }
    return 0;
  }

  FileName Name(size_t at, size_t size) const {
    const size_t start = lines_.Physical(at + 1);
    // Right behind the last character: a splice may follow.
    const size_t end = size > 2 ? lines_.Physical(at + size - 2) + 1 : start;
    return {std::string(text_.substr(at, size - 1)), start, end};
  }

  // Read to the end of the line, with a blank for each comment.
  void ReadRest(size_t* at, Directive* directive, bool ask) {
    std::string& rest = directive->rest;
    for (;;) {
      const size_t start = *at;
      size_t question = 0;
      while (*at < text_.size() && !IsRestStop(*at, &question)) ++*at;
      rest.append(text_, start, *at - start);
      if (*at >= text_.size() || text_[*at] == '\n') return;
      const size_t stop = *at;
      if (question != 0) {
        FileName name;
        const bool is_named = ReadQuestion(&(*at = stop + question), &name, ask);
        // An explicit query is not relevant any more.
        rest.append(is_named ? std::string_view(" 0 ") : text_.substr(stop, *at - stop));
        if (is_named) directive->questions.push_back(std::move(name));
        continue;
      }
      const bool is_comment = text_[stop] == '/';
      const size_t end = is_comment ? SkipComment(stop) : SkipLiteral(stop);
      *at = end == kNowhere ? text_.size() : end;
      rest.append(is_comment ? std::string_view(" ") : text_.substr(stop, *at - stop));
      if (end == kNowhere) return;
    }
  }

  bool IsRestStop(size_t at, size_t* question) const {
    const char c = text_[at];
    if (c == '\n' || c == '"' || c == '\'') return true;
    if (c == '/') return At(at + 1) == '/' || At(at + 1) == '*';
    if (c != '_' || !IsAt(at, "__has_") || (at > 0 && IsWord(text_[at - 1]))) return false;
    for (const std::string_view word : {"__has_include_next", "__has_include", "__has_embed"}) {
      const size_t end = at + word.size();
      if (IsAt(at, word) && (end >= text_.size() || !IsWord(text_[end]))) {
        *question = word.size();
        return true;
      }
    }
    return false;
  }

  bool ReadQuestion(size_t* at, FileName* name, bool ask) const {
    if (!ask) return false;
    size_t start = SkipBlanks(*at);
    const bool is_open = At(start) == '(';
    if (is_open) start = SkipBlanks(start + 1);
    const size_t size = NameSize(start);
    if (size == 0) return false;
    *name = Name(start, size);
    *at = start + size;
    const size_t end = SkipBlanks(*at);
    if (is_open && At(end) == ')') *at = end + 1;
    return true;
  }

  Lines lines_;
  std::string_view text_;
  Mode mode_;
  bool raw_strings_ = false;
  bool open_quotes_ = false;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
