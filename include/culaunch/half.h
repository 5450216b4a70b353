// float16 and bfloat16 bits of a double, rounded once, to nearest, ties to even; float32 bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// Bits of a binary format with an implicit leading one: `fraction` bits of fraction, exponents
// from `least` (of the smallest normal number) to `most`.
inline uint16_t NarrowBits(double value, int fraction, int least, int most) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const int exponent_bits = 15 - fraction;
  const auto sign = static_cast<uint16_t>((bits >> 63) << 15);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  const uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  const auto infinity = static_cast<uint16_t>(((1u << exponent_bits) - 1) << fraction);
  if (exponent == 1024) {
    const uint16_t quiet = mantissa != 0 ? static_cast<uint16_t>(1u << (fraction - 1)) : 0;
    return static_cast<uint16_t>(sign | infinity | quiet);
  }
  if (exponent > most) return static_cast<uint16_t>(sign | infinity);
  // Below the smallest normal number the format's spacing stays, and fewer bits are left.
  const int lost = 52 - fraction + (exponent < least ? least - exponent : 0);
  if (lost > 54) return sign;
  const uint64_t full = mantissa | (exponent == -1023 ? 0 : uint64_t{1} << 52);
  uint64_t kept = full >> lost;
  const uint64_t rest = full & ((uint64_t{1} << lost) - 1);
  const uint64_t half = uint64_t{1} << (lost - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // The leading one of a normal number adds itself to the exponent; so does a carry.
  if (exponent >= least) kept += static_cast<uint64_t>(exponent - least) << fraction;
  return static_cast<uint16_t>(sign | kept);
}

}  // namespace detail

inline uint16_t Float16Bits(double value) { return detail::NarrowBits(value, 10, -14, 15); }
inline uint16_t Bfloat16Bits(double value) { return detail::NarrowBits(value, 7, -126, 127); }

// The bits of the nearest float32.
inline uint32_t SingleBits(double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  return bits;
}

CULAUNCH_NAMESPACE_END
