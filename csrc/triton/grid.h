// The grid of a Triton launch: numbers, or a function of the arguments that gives them.
#pragma once

#include "python/python.h"
#include "triton/variant.h"

namespace triton {

// Read a grid: an int, or a sequence of one to three ints; a zero is allowed.
bool ReadGrid(PyObject* grid, uint32_t* dims);

// Likewise; of a kernel of Triton's own an int is no grid, as in Triton.
bool ReadTritonsGrid(PyObject* grid, bool is_tritons, uint32_t* dims);

// Call a grid function: `values` are the arguments by name, with the constants of a saved variant,
// if any. An invalid grid goes through Triton if that is allowed.
bool AskGrid(PyObject* grid, PyObject* values, const VariantObject* variant, bool falls_back,
             uint32_t* dims);

// For finding our own mistakes: whether what a grid gave before is what it gives now. False with a
// Python error set.
bool IsSameGrid(PyObject* grid, const uint32_t* before, const uint32_t* now);

}  // namespace triton
