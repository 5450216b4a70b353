// Arithmetic of an exported function: Python's results, and Python's errors with the place.
#pragma once

#include <cstdint>
#include <string>

#include "function_errors.h"
#include "half.h"
#include "python_math.h"
#include "python_numbers.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace function {

using numbers::Problem;

namespace detail {

template <class... Operands>
[[noreturn]] inline void RaiseProblem(Problem problem, const char* where, const char* symbol,
                                      Operands... operands) {
  std::string what = Text("at ", where, ": ", symbol, " of ");
  const char* between = "";
  ((what += between + Written(operands), between = " and "), ...);
  switch (problem) {
    case Problem::kZeroDivision:
      Raise("ZeroDivisionError", what + ": division by zero");
    case Problem::kNegativeShift:
      Raise("ValueError", what + ": negative shift count");
    case Problem::kNegativePower:
      Raise("ValueError", what + ": an int to a negative power is not an int");
    case Problem::kComplex:
      Raise("ValueError", what + ": a negative number to a fractional power is complex");
    case Problem::kNan:
      Raise("ValueError", what + ": NaN is not an int");
    case Problem::kDomain:
      Raise("ValueError", what + ": math domain error");
    default:
      Raise("OverflowError", what + ": the result does not fit 64 bits");
  }
}

// Compute `problem` and give back `result`, or raise.
template <class Result, class... Operands>
inline Result Checked(Problem problem, const Result& result, const char* where, const char* symbol,
                      Operands... operands) {
  if (CULAUNCH_UNLIKELY(problem != Problem::kNone)) {
    RaiseProblem(problem, where, symbol, operands...);
  }
  return result;
}

inline Problem Overflow(bool is_overflow) {
  return is_overflow ? Problem::kOverflow : Problem::kNone;
}

}  // namespace detail

// ---- ints

inline int64_t Add(int64_t x, int64_t y, const char* where) {
  int64_t sum = 0;
  const bool is_past = __builtin_add_overflow(x, y, &sum);
  return detail::Checked(detail::Overflow(is_past), sum, where, "+", x, y);
}

inline int64_t Subtract(int64_t x, int64_t y, const char* where) {
  int64_t difference = 0;
  const bool is_past = __builtin_sub_overflow(x, y, &difference);
  return detail::Checked(detail::Overflow(is_past), difference, where, "-", x, y);
}

inline int64_t Multiply(int64_t x, int64_t y, const char* where) {
  int64_t product = 0;
  const bool is_past = __builtin_mul_overflow(x, y, &product);
  return detail::Checked(detail::Overflow(is_past), product, where, "*", x, y);
}

inline int64_t Negate(int64_t x, const char* where) {
  int64_t result = 0;
  const bool is_past = __builtin_sub_overflow(int64_t{0}, x, &result);
  return detail::Checked(detail::Overflow(is_past), result, where, "-", x);
}

inline int64_t Abs(int64_t x, const char* where) { return x < 0 ? Negate(x, where) : x; }
inline int64_t Min(int64_t x, int64_t y) { return y < x ? y : x; }
inline int64_t Max(int64_t x, int64_t y) { return y > x ? y : x; }

inline int64_t FloorDivide(int64_t x, int64_t y, const char* where) {
  int64_t result = 0;
  const Problem problem = numbers::FloorDivide(x, y, &result);
  return detail::Checked(problem, result, where, "//", x, y);
}

inline int64_t CeilDivide(int64_t x, int64_t y, const char* where) {
  int64_t result = 0;
  const Problem problem = numbers::CeilDivide(x, y, &result);
  return detail::Checked(problem, result, where, "ceildiv", x, y);
}

inline int64_t Modulo(int64_t x, int64_t y, const char* where) {
  int64_t result = 0;
  const Problem problem = numbers::Modulo(x, y, &result);
  return detail::Checked(problem, result, where, "%", x, y);
}

inline int64_t Power(int64_t x, int64_t y, const char* where) {
  int64_t result = 0;
  const Problem problem = numbers::Power(x, y, &result);
  return detail::Checked(problem, result, where, "**", x, y);
}

inline int64_t ShiftLeft(int64_t x, int64_t y, const char* where) {
  int64_t result = 0;
  const Problem problem = numbers::ShiftLeft(x, y, &result);
  return detail::Checked(problem, result, where, "<<", x, y);
}

inline int64_t ShiftRight(int64_t x, int64_t y, const char* where) {
  if (y < 0) detail::RaiseProblem(Problem::kNegativeShift, where, ">>", x, y);
  return x >> (y > 63 ? 63 : y);
}

inline int64_t NextPowerOf2(int64_t x, const char* where) {
  int64_t result = 0;
  const Problem problem = numbers::NextPowerOf2(x, &result);
  return detail::Checked(problem, result, where, "next_power_of_2", x);
}

inline double TrueDivide(int64_t x, int64_t y, const char* where) {
  double result = 0;
  const Problem problem = numbers::TrueDivide(x, y, &result);
  return detail::Checked(problem, result, where, "/", x, y);
}

using numbers::BitLength;
using numbers::Compare;  // an int with a float: -1, 0, 1; 2 for NaN

inline bool IsAtLeast(int64_t x, double y) {
  const int order = Compare(x, y);
  return order == 0 || order == 1;
}

// ---- floats

inline double Divide(double x, double y, const char* where) {
  const Problem problem = y == 0 ? Problem::kZeroDivision : Problem::kNone;
  return detail::Checked(problem, x / y, where, "/", x, y);
}

inline double FloorDivide(double x, double y, const char* where) {
  double quotient = 0;
  double rest = 0;
  const Problem problem = numbers::FloatDivMod(x, y, &quotient, &rest);
  return detail::Checked(problem, quotient, where, "//", x, y);
}

inline double Modulo(double x, double y, const char* where) {
  double quotient = 0;
  double rest = 0;
  const Problem problem = numbers::FloatDivMod(x, y, &quotient, &rest);
  return detail::Checked(problem, rest, where, "%", x, y);
}

inline double Power(double x, double y, const char* where) {
  double result = 0;
  const Problem problem = numbers::FloatPower(x, y, &result);
  return detail::Checked(problem, result, where, "**", x, y);
}

inline double Min(double x, double y) { return y < x ? y : x; }
inline double Max(double x, double y) { return y > x ? y : x; }

// A float that was rounded, as an int.
inline int64_t ToInt(double rounded, const char* where) {
  int64_t result = 0;
  const Problem problem = numbers::WholeOf(rounded, &result);
  return detail::Checked(problem, result, where, "int", rounded);
}

// A function of Python's math. A result that is too large is an error only of some.
template <class Function>
double Math(Function function, bool can_overflow, const char* symbol, double x, const char* where) {
  double result = 0;
  const Problem problem = numbers::MathOf(function, can_overflow, x, &result);
  return detail::Checked(problem, result, where, symbol, x);
}

template <class Function>
double Math(Function function, const char* symbol, double x, double y, const char* where) {
  double result = 0;
  const Problem problem = numbers::MathOf(function, x, y, &result);
  return detail::Checked(problem, result, where, symbol, x, y);
}

inline double MathPower(double x, double y, const char* where) {
  double result = 0;
  const Problem problem = numbers::MathPower(x, y, &result);
  return detail::Checked(problem, result, where, "pow", x, y);
}

constexpr double kPi = 3.141592653589793238462643383279502884197;
inline double Degrees(double x) { return x * (180.0 / kPi); }
inline double Radians(double x) { return x * (kPi / 180.0); }

// Whether a computation raises an error of a kind.
template <class Compute>
bool Raises(const char* kind, Compute compute) {
  try {
    compute();
  } catch (const ::tvm::ffi::Error& error) {
    return error.kind() == kind;
  }
  return false;
}

// ---- the numbers that a parameter of a kernel takes

enum class Sign : uint8_t { kUnsigned, kSigned, kEither };

inline void RequireFits(int64_t value, int size, Sign sign, const char* where) {
  const bool fits = (sign != Sign::kSigned && numbers::Fits(value, size, false)) ||
                    (sign != Sign::kUnsigned && numbers::Fits(value, size, true));
  if (fits) return;
  const std::string bits = std::to_string(8 * size);
  const std::string half = std::to_string(8 * size - 1);
  const std::string low = sign == Sign::kUnsigned ? "0" : "-2^" + half;
  const std::string high = "2^" + (sign == Sign::kSigned ? half : bits) + " - 1";
  Raise("OverflowError",
        Text("at ", where, ": a parameter of ", int64_t{size}, size == 1 ? " byte" : " bytes",
             " must be from ", low.c_str(), " to ", high.c_str(), " (got ", value, ")"));
}

// By DLPack's code and bits of the parameter's type.
inline void RequireFloatFits(double value, int code, int bits, const char* where) {
  if (numbers::FloatFits(value, code, bits)) return;
  Raise("OverflowError", Text("at ", where, ": a float of ", int64_t{bits},
                              " bits cannot hold a number this large (got ", value, ")"));
}

inline void RequireDimension(int64_t value, int64_t most, const char* where) {
  if (value >= 1 && value <= most) return;
  Raise("ValueError", Text("at ", where, ": a grid, block or cluster must be from 1 to ", most,
                           " in every dimension (got ", value,
                           "): cl.launch_if launches nothing for an empty problem"));
}

}  // namespace function

CULAUNCH_NAMESPACE_END
