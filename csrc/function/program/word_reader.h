// The words of a program, one after the other.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace function {

// The error in words that are not a program.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reads words one after the other, up to an end.
class WordReader {
 public:
  WordReader(const char* words, size_t count) : words_(words), count_(count) {}

  int64_t Next() {
    if (at_ == count_) throw Wrong("it ends too early");
    int64_t word;
    std::memcpy(&word, words_ + 8 * at_++, sizeof word);
    return word;
  }

  // A number from 0 up to, but not, a limit.
  int64_t NextBelow(int64_t limit, const char* what) {
    const int64_t value = Next();
    if (value < 0 || value >= limit) {
      throw Wrong(std::string(what) + " " + std::to_string(value) + " is not below " +
                  std::to_string(limit));
    }
    return value;
  }

  WordReader Take(int64_t count) {
    if (count < 0 || static_cast<uint64_t>(count) > count_ - at_) throw Wrong("it ends too early");
    WordReader part(words_ + 8 * at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return part;
  }

  bool is_done() const { return at_ == count_; }
  size_t left() const { return count_ - at_; }

 private:
  const char* words_;
  size_t count_;
  size_t at_ = 0;
};

}  // namespace function
