// As much of JSON as an image's metadata needs.
#pragma once

#include <cstdint>
#include <string>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// Reads a text from front to back. After the first unexpected token nothing is left to read, and
// ok() is false.
class JsonReader {
 public:
  // The text must outlive it.
  explicit JsonReader(const std::string& text) : at_(text.data()), end_(at_ + text.size()) {}

  bool ok() const { return ok_; }

  // Give each member's name to visit(name), which reads its value.
  template <class Visit>
  void Object(const Visit& visit) {
    Expect('{');
    if (Accept('}')) return;
    do {
      const std::string name = String();
      Expect(':');
      visit(name);
    } while (Accept(','));
    Expect('}');
  }

  // Call visit(), which reads one value, for each of an array.
  template <class Visit>
  void Array(const Visit& visit) {
    Expect('[');
    if (Accept(']')) return;
    do visit();
    while (Accept(','));
    Expect(']');
  }

  // Nothing but space may follow.
  void End() {
    SkipSpace();
    if (at_ != end_) Fail();
  }

  // Read null, if it is there.
  bool IsNull() {
    SkipSpace();
    if (end_ - at_ < 4 || std::string(at_, 4) != "null") return false;
    at_ += 4;
    return true;
  }

  std::string String() {
    Expect('"');
    std::string text;
    for (char c; (c = Next()) != '"' && ok_;) {
      if (c == '\\') {
        Escape(&text);
      } else {
        text += c;
      }
    }
    return text;
  }

  int64_t Integer() {
    SkipSpace();
    const bool is_negative = at_ != end_ && *at_ == '-';
    if (is_negative) ++at_;
    uint64_t value = 0;
    int digits = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9' && digits < 20; ++at_, ++digits) {
      value = value * 10 + static_cast<uint64_t>(*at_ - '0');
    }
    if (digits == 0) Fail();
    return static_cast<int64_t>(is_negative ? 0 - value : value);
  }

  // Read a comma, if another item follows.
  void Comma() { Expect(','); }
  void Open() { Expect('['); }
  void Close() { Expect(']'); }

  // Pass over a value of any kind.
  void Skip(int depth = 0) {
    SkipSpace();
    if (at_ == end_ || depth > 64) return Fail();
    if (*at_ == '{') {
      Object([&](const std::string&) { Skip(depth + 1); });
    } else if (*at_ == '[') {
      Array([&] { Skip(depth + 1); });
    } else if (*at_ == '"') {
      String();
    } else {
      const char* start = at_;
      while (at_ != end_ && std::string(",]} \n\t\r").find(*at_) == std::string::npos) ++at_;
      if (at_ == start) Fail();
    }
  }

 private:
  void Fail() {
    ok_ = false;
    at_ = end_;
  }

  // A null if nothing is left.
  char Next() {
    if (at_ != end_) return *at_++;
    Fail();
    return '\0';
  }

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  bool Accept(char c) {
    SkipSpace();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  void Expect(char c) {
    if (!Accept(c)) Fail();
  }

  void Escape(std::string* text) {
    const char c = Next();
    switch (c) {
      case 'b':
        *text += '\b';
        break;
      case 'f':
        *text += '\f';
        break;
      case 'n':
        *text += '\n';
        break;
      case 'r':
        *text += '\r';
        break;
      case 't':
        *text += '\t';
        break;
      case 'u':
        CodePoint(text);
        break;
      default:
        *text += c;
    }
  }

  uint32_t Hex4() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = Next();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) Fail();
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    return value;
  }

  // Append what \u means, in UTF-8; two of them make a character past the first 65,536.
  void CodePoint(std::string* text) {
    uint32_t point = Hex4();
    if (point >= 0xd800 && point < 0xdc00 && end_ - at_ > 1 && at_[0] == '\\' && at_[1] == 'u') {
      at_ += 2;
      point = 0x10000 + ((point - 0xd800) << 10) + ((Hex4() - 0xdc00) & 0x3ff);
    }
    const auto byte = [&](uint32_t bits) { *text += static_cast<char>(bits); };
    if (point < 0x80) {
      byte(point);
    } else if (point < 0x800) {
      byte(0xc0 | point >> 6);
      byte(0x80 | (point & 63));
    } else if (point < 0x10000) {
      byte(0xe0 | point >> 12);
      byte(0x80 | (point >> 6 & 63));
      byte(0x80 | (point & 63));
    } else {
      byte(0xf0 | point >> 18);
      byte(0x80 | (point >> 12 & 63));
      byte(0x80 | (point >> 6 & 63));
      byte(0x80 | (point & 63));
    }
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace detail

CULAUNCH_NAMESPACE_END
