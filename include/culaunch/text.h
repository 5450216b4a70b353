// Numbers in messages.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

inline std::string Digits(uint64_t number, bool is_negative) {
  char digits[21];
  char* at = digits + sizeof digits;
  do *--at = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  if (is_negative) *--at = '-';
  return std::string(at, digits + sizeof digits);
}

// std::to_string has a static table in it, for which g++ emits an STB_GNU_UNIQUE symbol, and a
// library with one is never unloaded.
template <class Integer>
std::string ToText(Integer number) {
  static_assert(std::is_integral_v<Integer>, "ToText takes an integer");
  if constexpr (std::is_unsigned_v<Integer>) {
    return Digits(number, false);
  } else {
    const auto bits = static_cast<uint64_t>(static_cast<int64_t>(number));
    return number < 0 ? Digits(uint64_t{0} - bits, true) : Digits(bits, false);
  }
}

// "1 byte", "2 bytes".
template <class Integer>
std::string Counted(Integer number, const char* noun) {
  return ToText(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace detail

CULAUNCH_NAMESPACE_END
