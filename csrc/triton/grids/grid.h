// The grid of a Triton launch: numbers, or a function of the arguments that gives them.
#pragma once

#include "python/python.h"
#include "triton/variants/variant.h"

namespace triton {

// Read a grid: an int, or a sequence of one to three ints; a zero is allowed.
bool ReadGrid(PyObject* grid, uint32_t* dims);

// The same. For one of Triton's own kernels, an int is not a grid, as in Triton.
bool ReadTritonsGrid(PyObject* grid, bool is_tritons, uint32_t* dims);

// Call a grid function. `values` are the arguments by name, with the constants of a saved variant,
// if any. An invalid grid falls back to Triton if this is allowed.
bool AskGrid(PyObject* grid, PyObject* values, const VariantObject* variant, bool falls_back,
             uint32_t* dims);

// For debugging culaunch: whether a grid function still returns the same result. False with a
// Python error set.
bool IsSameGrid(PyObject* grid, const uint32_t* before, const uint32_t* now);

}  // namespace triton
