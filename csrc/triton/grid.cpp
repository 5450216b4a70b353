#include "triton/grid.h"

#include "driver/errors.h"
#include "launch/configuration.h"
#include "triton/tritons_way.h"

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

bool AskGrid(PyObject* grid, PyObject* values, const VariantObject* variant, bool falls_back,
             uint32_t* dims) {
  // What a saved variant was compiled with and the caller left out.
  if (variant != nullptr && PyDict_Update(values, variant->constants) < 0) return false;
  const Ref found(PyObject_CallFunctionObjArgs(grid, values, nullptr));
  if (!found) return false;
  if (ReadGrid(found.get(), dims)) return true;
  if (falls_back) GoTritonsWay();
  return false;
}

}  // namespace triton
