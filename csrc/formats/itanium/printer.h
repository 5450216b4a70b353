// The text of a name as it is printed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "formats/itanium/arena.h"

namespace itanium {

// The qualifiers that were just said of the type that is printed next, the last one first. They
// lie on the stack of those that said them.
struct Said {
  std::string_view word;
  const Said* before;
};

// Collects text up to a limit, in at most a number of steps. Parts are shared, so a short name may
// spell a text of exponential length, or of many parts without a letter.
class Printer {
 public:
  // West: `const float*` in place of `float const*`.
  explicit Printer(bool west = false) : west_(west) {}

  void Add(std::string_view text) {
    Step();
    if (text.size() > kMostText - text_.size()) throw Unsupported();
    text_.append(text);
  }

  // Count a part that was looked at.
  void Step() {
    if (++steps_ > kMostSteps) throw Unsupported();
  }

  bool EndsWith(char letter) const { return !text_.empty() && text_.back() == letter; }
  bool west() const { return west_; }
  const std::string& text() const { return text_; }

  // Start another text. Its limit is the remainder of the texts before.
  std::string TakeText() {
    std::string taken;
    taken.swap(text_);
    return taken;
  }

  const Said* said = nullptr;
  // Which element of the packs is printed; kAll outside of an expansion.
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
