#include "function/plans/python_math.h"

#include <cmath>
#include <cstring>

#include "python/upcalls.h"

namespace function {

namespace {

Problem Ask(const Ref& result, Word* word) {
  if (!result) return Problem::kRaised;
  if (!PyFloat_Check(result.get())) {
    PyErr_SetString(PyExc_ValueError, "the result is not a float");
    return Problem::kRaised;
  }
  *word = FromFloat(PyFloat_AsDouble(result.get()));
  return Problem::kNone;
}

// Functions that Python's math module has only from 3.11 on. A program from another Python version
// may use them.
Problem CallNewer(bool is_exp2, double x, Word* word) {
  const double result = is_exp2 ? std::exp2(x) : std::cbrt(x);
  if (std::isinf(result) && !std::isinf(x)) {
    PyErr_SetString(PyExc_OverflowError, "math range error");
    return Problem::kRaised;
  }
  *word = FromFloat(result);
  return Problem::kNone;
}

}  // namespace

Problem FloatPower(double x, double y, Word* word) {
  const Ref base(PyFloat_FromDouble(x));
  const Ref exponent(PyFloat_FromDouble(y));
  if (!base || !exponent) return Problem::kRaised;
  return Ask(Ref(PyNumber_Power(base.get(), exponent.get(), Py_None)), word);
}

Problem TrueDivide(Word x, Word y, Word* word) {
  if (y == 0) return Problem::kZeroDivision;
  constexpr Word kExact = Word{1} << 53;
  if (x >= -kExact && x <= kExact && y >= -kExact && y <= kExact) {
    *word = FromFloat(static_cast<double>(x) / static_cast<double>(y));
    return Problem::kNone;
  }
  const Ref dividend(PyLong_FromLongLong(x));
  const Ref divisor(PyLong_FromLongLong(y));
  if (!dividend || !divisor) return Problem::kRaised;
  return Ask(Ref(PyNumber_TrueDivide(dividend.get(), divisor.get())), word);
}

Problem CallMath(Word number, double x, const double* y, Word* word) {
#define CULAUNCH_MATH_NAME(name, number) #name,
  static constexpr const char* names[] = {CULAUNCH_MATH_FUNCTIONS(CULAUNCH_MATH_NAME)};
#undef CULAUNCH_MATH_NAME
  const char* name = names[number];
  const Ref math = Import(modules::kMath);
  if (!math) return Problem::kRaised;
  const bool is_exp2 = std::strcmp(name, "exp2") == 0;
  if ((is_exp2 || std::strcmp(name, "cbrt") == 0) && PyObject_HasAttrString(math.get(), name) == 0)
    return CallNewer(is_exp2, x, word);
  if (y != nullptr && std::strcmp(name, "ldexp") == 0) {
    const Ref exponent(PyLong_FromDouble(*y));
    if (!exponent) return Problem::kRaised;
    return Ask(Ref(PyObject_CallMethod(math.get(), name, "dO", x, exponent.get())), word);
  }
  return Ask(Ref(y == nullptr ? PyObject_CallMethod(math.get(), name, "d", x)
                              : PyObject_CallMethod(math.get(), name, "dd", x, *y)),
             word);
}

}  // namespace function
