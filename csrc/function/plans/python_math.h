// Functions that Python itself computes, because its math has many rules. The cost is small: a plan
// runs only once for numbers that repeat.
#pragma once

#include <culaunch/python_numbers.h>

#include "function/program/program.h"

namespace function {

using namespace culaunch::numbers;

// Each puts its result, a float, in `word`; kRaised: with a Python error set.
Problem FloatPower(double x, double y, Word* word);
Problem TrueDivide(Word x, Word y, Word* word);

// A function of Python's module math, by its number; y may be null.
Problem CallMath(Word number, double x, const double* y, Word* word);

}  // namespace function
