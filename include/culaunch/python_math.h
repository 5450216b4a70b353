// The parts of Python's division, powers and `math` that need no Python. They have the same results
// and errors, from the same C library as CPython. This is for exported functions; in Python, Python
// itself computes.
#pragma once

#include <cmath>
#include <cstdint>

#include "python_numbers.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace numbers {

namespace detail {

inline int BitsOf(uint64_t value) {
  int bits = 0;
  for (; value != 0; value >>= 1) ++bits;
  return bits;
}

inline uint64_t Magnitude(int64_t x) {
  return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
}

__extension__ using Wide = unsigned __int128;

// The result of a function of the C library, by the rules of CPython's mathmodule.c.
inline Problem Judged(double result, bool has_nan, bool is_finite, bool can_overflow) {
  if (std::isnan(result) && !has_nan) return Problem::kDomain;
  if (std::isinf(result) && is_finite) return can_overflow ? Problem::kOverflow : Problem::kDomain;
  return Problem::kNone;
}

}  // namespace detail

// x / y, rounded once.
inline Problem TrueDivide(int64_t x, int64_t y, double* result) {
  if (y == 0) return Problem::kZeroDivision;
  const uint64_t dividend = detail::Magnitude(x);
  const uint64_t divisor = detail::Magnitude(y);
  // So many bits are kept, and one that says whether there are more, that rounding sees them all.
  const int wanted = 56 + detail::BitsOf(divisor) - detail::BitsOf(dividend);
  const int shift = wanted > 0 ? wanted : 0;
  const detail::Wide scaled = detail::Wide{dividend} << shift;
  auto quotient = static_cast<uint64_t>(scaled / divisor);
  if (scaled % divisor != 0) quotient |= 1;
  const double magnitude = std::ldexp(static_cast<double>(quotient), -shift);
  *result = (x < 0) != (y < 0) ? -magnitude : magnitude;
  return Problem::kNone;
}

// x ** y of floats.
inline Problem FloatPower(double x, double y, double* result) {
  if (x == 0 && y < 0 && std::isfinite(y)) return Problem::kZeroDivision;
  if (std::isfinite(x) && std::isfinite(y) && x < 0 && y != std::floor(y)) return Problem::kComplex;
  *result = std::pow(x, y);
  const bool is_finite = std::isfinite(x) && std::isfinite(y);
  return std::isinf(*result) && is_finite ? Problem::kOverflow : Problem::kNone;
}

// A function of one number: `can_overflow` where an infinity is too large a result and not a pole.
template <class Function>
Problem MathOf(Function function, bool can_overflow, double x, double* result) {
  *result = function(x);
  return detail::Judged(*result, std::isnan(x), std::isfinite(x), can_overflow);
}

template <class Function>
Problem MathOf(Function function, double x, double y, double* result) {
  *result = function(x, y);
  return detail::Judged(*result, std::isnan(x) || std::isnan(y),
                        std::isfinite(x) && std::isfinite(y), true);
}

// math.pow: poles and fractional powers of negative numbers are refused.
inline Problem MathPower(double x, double y, double* result) {
  *result = std::pow(x, y);
  if (!std::isfinite(x) || !std::isfinite(y)) return Problem::kNone;
  if (std::isnan(*result)) return Problem::kDomain;
  if (std::isinf(*result)) return x == 0 ? Problem::kDomain : Problem::kOverflow;
  return Problem::kNone;
}

}  // namespace numbers

CULAUNCH_NAMESPACE_END
