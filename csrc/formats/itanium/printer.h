// The text of a name while it is printed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "formats/itanium/arena.h"

namespace itanium {

// The qualifiers already printed for the type that is printed next, the last one first. They are on
// the stacks of the callers that printed them.
struct Said {
  std::string_view word;
  const Said* before;
};

// Collects text up to a limit, in at most a number of steps. Parts are shared, so a short name may
// produce a text of exponential length, or many parts without a letter.
class Printer {
 public:
  // West: `const float*` in place of `float const*`.
  explicit Printer(bool west = false) : west_(west) {}

  void Add(std::string_view text) {
    Step();
    if (text.size() > kMostText - text_.size()) throw Unsupported();
    text_.append(text);
  }

  // Count a visited part.
  void Step() {
    if (++steps_ > kMostSteps) throw Unsupported();
  }

  bool EndsWith(char letter) const { return !text_.empty() && text_.back() == letter; }
  bool west() const { return west_; }
  const std::string& text() const { return text_; }

  // Start another text. Its limit is what the texts before it left over.
  std::string TakeText() {
    std::string taken;
    taken.swap(text_);
    return taken;
  }

  const Said* said = nullptr;
  // Which element of the packs is printed; kAll outside an expansion.
  static constexpr int kAll = -1;
  int pack_index = kAll;

 private:
  static constexpr size_t kMostText = 1 << 16;
  static constexpr int kMostSteps = 1 << 17;

  std::string text_;
  int steps_ = 0;
  const bool west_;
};

}  // namespace itanium
