#include "triton/grids/grid.h"

#include <algorithm>

#include "driver/errors.h"
#include "launch/configuration.h"
#include "triton/grids/fallback.h"

namespace triton {

bool ReadGrid(PyObject* grid, uint32_t* dims) {
  if (QuickDims(grid, dims)) return true;
  bool is_too_large = false;
  if (ReadSlowDims(grid, dims, &is_too_large)) return true;
  PyErr_Format(is_too_large ? PyExc_OverflowError : PyExc_TypeError,
               "a grid must be a tuple of 1 to 3 ints, each from 0 to 2^31 - 1, or a function of "
               "the arguments that gives one (got %S)",
               Spelled(grid).get());
  return false;
}

bool ReadTritonsGrid(PyObject* grid, bool is_tritons, uint32_t* dims) {
  if (is_tritons && PyLong_Check(grid) != 0) {
    PyErr_SetString(PyExc_TypeError, "a grid must be a sequence of ints (got an int)");
    return false;
  }
  return ReadGrid(grid, dims);
}

bool AskGrid(PyObject* grid, PyObject* values, const VariantObject* variant, bool falls_back,
             uint32_t* dims) {
  // Constants that a saved variant was compiled with and the caller omitted.
  if (variant != nullptr && PyDict_Update(values, variant->constants) < 0) return false;
  const Ref found(PyObject_CallFunctionObjArgs(grid, values, nullptr));
  if (!found) return false;
  if (ReadTritonsGrid(found.get(), falls_back, dims)) return true;
  if (falls_back) RaiseFallback();
  return false;
}

bool IsSameGrid(PyObject* grid, const uint32_t* before, const uint32_t* now) {
  if (std::equal(before, before + 3, now)) return true;
  PyErr_Format(PyExc_SystemError,
               "a defect of culaunch, please report it: the grid %R returns (%u, %u, %u), but (%u, "
               "%u, %u) was used",
               grid, now[0], now[1], now[2], before[0], before[1], before[2]);
  return false;
}

}  // namespace triton
