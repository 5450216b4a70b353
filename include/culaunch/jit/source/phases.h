// The first phases of translation: line ends, trigraphs and spliced lines, with a way back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../../version.h"
#include "characters.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

constexpr size_t kNowhere = std::string_view::npos;

// One way to read a text, where compilers and their dialects differ.
struct Mode {
  bool trigraphs = false;       // ??= is #
  bool spaced_splices = false;  // blanks may stand between a backslash and the end of its line
  bool lone_returns = false;    // a carriage return by itself ends a line
  bool no_raw_strings = false;  // R"(...)" is a name and a string, as before C++11
  bool open_quotes = false;     // a quote that is not closed takes the rest of its line
};

// The character of a trigraph at the front of a text; 0 if there is none.
inline char Trigraph(std::string_view text) {
  if (text.size() < 3 || text[0] != '?' || text[1] != '?') return 0;
  static constexpr char kThird[] = "=/'()!<>-";
  static constexpr char kMeant[] = "#\\^[]|{}~";
  for (size_t i = 0; kThird[i] != '\0'; ++i) {
    if (text[2] == kThird[i]) return kMeant[i];
  }
  return 0;
}

// A text after the first phases; Physical leads back. It points into itself: not copyable.
class Lines {
 public:
  // The text must outlive it.
  Lines(std::string_view given, const Mode& mode) : original_(given), text_(given) {
    if (mode.lone_returns) {
      returned_ = given;
      for (size_t i = 0; i < returned_.size(); ++i) {
        const bool is_alone = i + 1 == returned_.size() || given[i + 1] != '\n';
        if (returned_[i] == '\r' && is_alone) returned_[i] = '\n';
      }
      original_ = text_ = returned_;
    }
    if (mode.trigraphs || original_.find('\\') != kNowhere) Splice(mode);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  std::string_view text() const noexcept { return text_; }
  // The original text, except for lone carriage returns.
  std::string_view original() const noexcept { return original_; }

  // Where in the original text a character is.
  size_t Physical(size_t place) const {
    const auto after = std::upper_bound(logical_.begin(), logical_.end(), place);
    return after == logical_.begin()
               ? place
               : place + shift_[static_cast<size_t>(after - logical_.begin()) - 1];
  }

  // Where a character of the original text has gone.
  size_t Logical(size_t place) const {
    size_t low = 0;
    for (size_t high = logical_.size(); low < high;) {
      const size_t middle = (low + high) / 2;
      if (logical_[middle] + shift_[middle] <= place) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low == 0 ? place : place - shift_[low - 1];
  }

 private:
  void Splice(const Mode& mode) {
    size_t end = 0;
    size_t removed = 0;
    for (size_t at = 0; at < original_.size();) {
      const std::string_view rest = original_.substr(at);
      const char meant = mode.trigraphs ? Trigraph(rest) : '\0';
      size_t size = meant == '\\' ? SpliceSize(rest, 3, mode) : 0;
      if (rest[0] == '\\') size = SpliceSize(rest, 1, mode);
      if (size == 0 && meant == '\0') {
        ++at;
        continue;
      }
      spliced_.append(original_, end, at - end);
      const size_t kept = size == 0 ? 1 : 0;
      if (kept != 0) spliced_ += meant;
      if (size == 0) size = 3;
      logical_.push_back(at - removed + kept);
      removed += size - kept;
      shift_.push_back(removed);
      at = end = at + size;
    }
    if (shift_.empty()) return;
    spliced_.append(original_, end, kNowhere);
    text_ = spliced_;
  }

  // The length in bytes of a splice whose backslash has that many; 0 if it is not a splice.
  static size_t SpliceSize(std::string_view text, size_t slash, const Mode& mode) {
    size_t at = slash;
    if (mode.spaced_splices) {
      while (at < text.size() && IsBlank(text[at])) ++at;
    } else if (at < text.size() && text[at] == '\r') {
      ++at;
    }
    return at < text.size() && text[at] == '\n' ? at + 1 : 0;
  }

  std::string_view original_;
  std::string_view text_;
  std::string returned_;
  std::string spliced_;
  std::vector<size_t> logical_;
  std::vector<size_t> shift_;
};

// The other ways in which a text could be read, besides the usual one.
inline std::vector<Mode> OtherModes(std::string_view text, bool raw_strings, bool open_quotes) {
  bool trigraphs = false;
  bool spaced = false;
  bool returns = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '?' && !trigraphs) trigraphs = Trigraph(text.substr(at)) != 0;
    const bool is_slash = c == '\\' || (c == '?' && Trigraph(text.substr(at)) == '\\');
    if (is_slash && !spaced && text.find('\\') != kNowhere) {
      // A return before the line feed is part of the line's end, with which every compiler splices.
      size_t end = at + (c == '?' ? 3 : 1);
      const std::string_view rest = text.substr(end);
      if (StartsWith(rest, "\n") || StartsWith(rest, "\r\n")) continue;
      const size_t start = end;
      while (end < text.size() && IsBlank(text[end])) ++end;
      spaced = end > start && end < text.size() && text[end] == '\n';
    }
    if (c == '\r') returns = returns || at + 1 == text.size() || text[at + 1] != '\n';
  }
  std::vector<Mode> found;
  const unsigned doubts = (trigraphs ? 1u : 0u) | (spaced ? 2u : 0u) | (returns ? 4u : 0u) |
                          (raw_strings ? 8u : 0u) | (open_quotes ? 16u : 0u);
  for (unsigned choice = 1; choice <= doubts; ++choice) {
    if ((choice & ~doubts) != 0) continue;
    found.push_back({(choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0, (choice & 8) != 0,
                     (choice & 16) != 0});
  }
  return found;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
