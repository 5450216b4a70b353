// Numbers as Python computes them, in 64 bits. An operation without a result is a Problem and not a
// wrong number. Bodies of functions use these, natively and in exported libraries.
#pragma once

#include <cmath>
#include <cstdint>

#include "half.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace numbers {

enum class Problem : uint8_t {
  kNone,
  kOverflow,
  kZeroDivision,
  kNegativeShift,
  kNegativePower,  // of an int: the result would be a float
  kNan,            // is not an int
  kInfinity,       // is not an int
  kDomain,         // what math refuses
  kComplex,        // a negative number to a fractional power
  kCheck,          // a check failed
  kRaised,         // said elsewhere
};

inline Problem FloorDivide(int64_t x, int64_t y, int64_t* quotient) {
  if (y == 0) return Problem::kZeroDivision;
  if (y == -1)
    return __builtin_sub_overflow(int64_t{0}, x, quotient) ? Problem::kOverflow : Problem::kNone;
  const int64_t towards_zero = x / y;
  *quotient = towards_zero - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
  return Problem::kNone;
}

inline Problem CeilDivide(int64_t x, int64_t y, int64_t* quotient) {
  if (y == 0) return Problem::kZeroDivision;
  if (y == -1)
    return __builtin_sub_overflow(int64_t{0}, x, quotient) ? Problem::kOverflow : Problem::kNone;
  const int64_t towards_zero = x / y;
  *quotient = towards_zero + ((x % y != 0 && (x < 0) == (y < 0)) ? 1 : 0);
  return Problem::kNone;
}

inline Problem Modulo(int64_t x, int64_t y, int64_t* rest) {
  if (y == 0) return Problem::kZeroDivision;
  if (y == -1) {
    *rest = 0;
    return Problem::kNone;
  }
  const int64_t remainder = x % y;
  *rest = remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
  return Problem::kNone;
}

// A negative exponent would make a float.
inline Problem Power(int64_t base, int64_t exponent, int64_t* result) {
  if (exponent < 0) return Problem::kNegativePower;
  int64_t power = 1;
  while (exponent != 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(power, base, &power)) {
      return Problem::kOverflow;
    }
    exponent >>= 1;
    if (exponent != 0 && __builtin_mul_overflow(base, base, &base)) return Problem::kOverflow;
  }
  *result = power;
  return Problem::kNone;
}

inline Problem ShiftLeft(int64_t x, int64_t count, int64_t* result) {
  if (count < 0) return Problem::kNegativeShift;
  *result = 0;
  if (x == 0) return Problem::kNone;
  if (count > 62) {
    if (count != 63 || x != -1) return Problem::kOverflow;
    *result = INT64_MIN;
    return Problem::kNone;
  }
  return __builtin_mul_overflow(x, int64_t{1} << count, result) ? Problem::kOverflow
                                                                : Problem::kNone;
}

inline Problem NextPowerOf2(int64_t x, int64_t* result) {
  if (x > int64_t{1} << 62) return Problem::kOverflow;
  int64_t power = 1;
  while (power < x) power <<= 1;
  *result = power;
  return Problem::kNone;
}

inline int64_t BitLength(int64_t x) {
  auto rest = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  int64_t bits = 0;
  for (; rest != 0; rest >>= 1) ++bits;
  return bits;
}

// -1, 0, 1, or 2 for NaN: as Python compares an int with a float, exactly.
inline int Compare(int64_t whole, double real) {
  if (std::isnan(real)) return 2;
  if (real >= 0x1p63) return -1;
  if (real < -0x1p63) return 1;
  const double floor = std::floor(real);
  const auto bound = static_cast<int64_t>(floor);
  if (whole != bound) return whole < bound ? -1 : 1;
  return real > floor ? -1 : 0;
}

// float_divmod of CPython's floatobject.c: the quotient is a whole number, the rest has the
// divisor's sign.
inline Problem FloatDivMod(double x, double y, double* quotient, double* rest) {
  if (y == 0) return Problem::kZeroDivision;
  double mod = std::fmod(x, y);
  double div = (x - mod) / y;
  if (mod != 0) {
    if ((y < 0) != (mod < 0)) {
      mod += y;
      div -= 1;
    }
  } else {
    mod = std::copysign(0.0, y);
  }
  double floor;
  if (div != 0) {
    floor = std::floor(div);
    if (div - floor > 0.5) floor += 1;
  } else {
    floor = std::copysign(0.0, x / y);
  }
  *quotient = floor;
  *rest = mod;
  return Problem::kNone;
}

inline Problem WholeOf(double rounded, int64_t* result) {
  if (std::isnan(rounded)) return Problem::kNan;
  if (std::isinf(rounded)) return Problem::kInfinity;
  if (rounded >= 0x1p63 || rounded < -0x1p63) return Problem::kOverflow;
  *result = static_cast<int64_t>(rounded);
  return Problem::kNone;
}

inline bool Fits(int64_t value, int32_t size, bool is_signed) {
  if (size == 8) return is_signed || value >= 0;
  const int bits = size * 8;
  if (is_signed) return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1);
  return value >= 0 && value < int64_t{1} << bits;
}

inline bool FloatFits(double value, int32_t code, int64_t bits) {
  constexpr int32_t kBfloat = 4;
  if (!std::isfinite(value) || bits == 64) return true;
  if (bits == 32) return std::isfinite(static_cast<float>(value));
  if (code == kBfloat) return (Bfloat16Bits(value) & 0x7f80) != 0x7f80;
  return (Float16Bits(value) & 0x7c00) != 0x7c00;
}

}  // namespace numbers

CULAUNCH_NAMESPACE_END
