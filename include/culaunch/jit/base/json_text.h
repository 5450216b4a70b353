// JSON as Python's json.dumps writes it, byte for byte: keys are digests of such text, and entries
// hold it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "../../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// Read one multi-byte character at the front of a text; return its number of bytes, or 0 if they
// are invalid.
inline size_t Utf8Size(std::string_view bytes, uint32_t* point) {
  const auto at = [&](size_t i) { return uint32_t{static_cast<unsigned char>(bytes[i])}; };
  const uint32_t lead = at(0);
  const size_t size = lead >= 0xf0 && lead < 0xf5   ? 4
                      : lead >= 0xe0 && lead < 0xf0 ? 3
                      : lead >= 0xc2 && lead < 0xe0 ? 2
                                                    : 0;
  if (size == 0 || bytes.size() < size) return 0;
  *point = lead & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    *point = *point << 6 | (at(i) & 0x3f);
  }
  if (size == 3 && (*point < 0x800 || (*point >= 0xd800 && *point < 0xe000))) return 0;
  return size == 4 && (*point < 0x10000 || *point > 0x10ffff) ? 0 : size;
}

// Writes one value after another. All that is not ASCII is escaped; bytes that are not UTF-8, which
// file names may have, become the lone surrogates that Python uses.
class JsonText {
 public:
  // Between items: ", " is the default of json.dumps, "," its short form.
  explicit JsonText(std::string_view comma = ", ", std::string_view colon = ": ")
      : comma_(comma), colon_(colon) {}

  const std::string& text() const noexcept { return text_; }

  JsonText& Open(char bracket) {
    Item();
    text_ += bracket;
    is_first_ = true;
    return *this;
  }
  JsonText& Close(char bracket) {
    text_ += bracket;
    is_first_ = false;
    return *this;
  }
  JsonText& Null() { return Word("null"); }
  JsonText& Flag(bool value) { return Word(value ? "true" : "false"); }
  JsonText& Integer(int64_t value) {
    char digits[24];
    char* at = digits + sizeof digits;
    uint64_t left = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    do *--at = static_cast<char>('0' + left % 10);
    while ((left /= 10) != 0);
    if (value < 0) *--at = '-';
    return Word({at, static_cast<size_t>(digits + sizeof digits - at)});
  }
  JsonText& String(std::string_view value) {
    Item();
    Quote(value);
    return *this;
  }
  JsonText& Key(std::string_view name) {
    Item();
    Quote(name);
    text_ += colon_;
    is_first_ = true;
    return *this;
  }
  template <class Texts>
  JsonText& Strings(const Texts& texts) {
    Open('[');
    for (const auto& one : texts) String(one);
    return Close(']');
  }

 private:
  void Item() {
    if (!is_first_) text_ += comma_;
    is_first_ = false;
  }

  JsonText& Word(std::string_view word) {
    Item();
    text_ += word;
    return *this;
  }

  void Quote(std::string_view value) {
    text_ += '"';
    for (size_t at = 0; at < value.size();) {
      const unsigned char c = static_cast<unsigned char>(value[at]);
      if (c < 0x80) {
        Ascii(static_cast<char>(c));
        ++at;
        continue;
      }
      uint32_t point = 0;
      const size_t size = Utf8Size(value.substr(at), &point);
      if (size == 0) {
        Escape(0xdc00 + c);
        ++at;
      } else {
        if (point >= 0x10000) Escape(0xd800 + ((point - 0x10000) >> 10));
        Escape(point >= 0x10000 ? 0xdc00 + ((point - 0x10000) & 0x3ff) : point);
        at += size;
      }
    }
    text_ += '"';
  }

  void Ascii(char c) {
    static constexpr char kNamed[] = "\"\\\n\r\t\b\f";
    static constexpr char kLetters[] = "\"\\nrtbf";
    for (size_t i = 0; kNamed[i] != '\0'; ++i) {
      if (c == kNamed[i]) {
        text_ += '\\';
        text_ += kLetters[i];
        return;
      }
    }
    if (c >= 0 && c < ' ') {
      Escape(static_cast<uint32_t>(c));
    } else {
      text_ += c;
    }
  }

  void Escape(uint32_t unit) {
    static constexpr char kDigits[] = "0123456789abcdef";
    text_ += "\\u";
    for (unsigned shift = 16; shift != 0; shift -= 4) text_ += kDigits[unit >> (shift - 4) & 15];
  }

  std::string_view comma_;
  std::string_view colon_;
  std::string text_;
  bool is_first_ = true;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
