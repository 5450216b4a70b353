// The errors of an exported function: Python's own exception types, with the place in the body.
#pragma once

#include <tvm/ffi/error.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace function {

// Throw an error of a kind that Python knows: "ValueError", "OverflowError".
[[noreturn]] inline void Raise(const char* kind, const std::string& message) {
  throw ::tvm::ffi::Error(kind, message, "");
}

namespace detail {

// A float as Python's repr() writes it: the shortest digits that give it back.
inline std::string Written(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char room[40];
  const auto end =
      std::to_chars(room, room + sizeof room, value, std::chars_format::scientific).ptr;
  std::string digits(room, end);
  const size_t at = digits.find('e');
  const int exponent = std::stoi(digits.substr(at + 1));
  if (exponent < -4 || exponent >= 16) return digits;
  digits.assign(room, std::to_chars(room, room + sizeof room, value, std::chars_format::fixed).ptr);
  return digits.find('.') == std::string::npos ? digits + ".0" : digits;
}

inline std::string Written(int64_t value) { return std::to_string(value); }
inline std::string Written(bool value) { return value ? "True" : "False"; }
inline std::string Written(const char* text) { return text; }

}  // namespace detail

// A message of texts and numbers, as Python writes them.
template <class... Parts>
std::string Text(const Parts&... parts) {
  return (detail::Written(parts) + ...);
}

// Raise unless a condition holds; the message is made where it does not.
template <class... Parts>
inline void Check(bool condition, const char* kind, const Parts&... parts) {
  if (!condition) Raise(kind, Text(parts...));
}

// A path of the body that was not there when the library was made.
[[noreturn]] inline void RaiseUnknownPath(const char* name, const char* where,
                                          const char* condition, bool outcome) {
  Raise("NotImplementedError",
        std::string(name) + " was exported without the path that this call takes: at " + where +
            ", where " + condition + " is " + (outcome ? "true" : "false") +
            "; export it after a call like this one, or after specialize() of both sides");
}

}  // namespace function

CULAUNCH_NAMESPACE_END
