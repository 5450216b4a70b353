// Reading a mangled name letter by letter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/itanium/arena.h"

namespace itanium {

inline bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }

// Whether a text contains a letter. The zero past the end of a name never counts.
inline bool Has(std::string_view letters, char letter) {
  return letter != '\0' && letters.find(letter) != std::string_view::npos;
}

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool at_end() const { return position_ == text_.size(); }

  // A letter, or zero past the end.
  char Peek(size_t ahead = 0) const {
    return ahead < text_.size() - position_ ? text_[position_ + ahead] : '\0';
  }

  std::string_view Take(size_t count) {
    if (count > text_.size() - position_) throw Unsupported();
    position_ += count;
    return text_.substr(position_ - count, count);
  }

  char Take() { return Take(1)[0]; }

  bool Accept(char letter) {
    if (at_end() || text_[position_] != letter) return false;
    ++position_;
    return true;
  }

  bool Accept(std::string_view text) {
    if (text_.compare(position_, text.size(), text) != 0) return false;
    position_ += text.size();
    return true;
  }

  template <class Wanted>
  void Expect(Wanted wanted) {
    if (!Accept(wanted)) throw Unsupported();
  }

  // A decimal number.
  size_t TakeNumber() {
    const std::string_view digits = TakeDigits();
    if (digits.empty() || digits.size() > kMostDigits) throw Unsupported();
    size_t value = 0;
    for (const char digit : digits) value = 10 * value + static_cast<size_t>(digit - '0');
    return value;
  }

  // The longest run of these letters.
  std::string_view TakeAll(std::string_view letters) {
    const size_t start = position_;
    while (Has(letters, Peek())) ++position_;
    return text_.substr(start, position_ - start);
  }

  // The digits of a number of any length.
  std::string_view TakeDigits() { return TakeAll("0123456789"); }

  // `_`, `0_`, `1_`, ... as 0, 1, 2; to the base 36 with the letters A to Z.
  int64_t TakeSequenceNumber(int base = 10) {
    if (Accept('_')) return 0;
    int64_t value = 0;
    for (size_t count = 0; !Accept('_'); ++count) {
      const char letter = Take();
      const int digit = IsDigit(letter)                  ? letter - '0'
                        : letter >= 'A' && letter <= 'Z' ? letter - 'A' + 10
                                                         : base;
      if (digit >= base || count == kMostDigits) throw Unsupported();
      value = base * value + digit;
    }
    return value + 1;
  }

 private:
  static constexpr size_t kMostDigits = 9;

  const std::string_view text_;
  size_t position_ = 0;
};

}  // namespace itanium
