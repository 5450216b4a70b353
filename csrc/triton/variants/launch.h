// Launching a variant of a Triton kernel.
#pragma once

#include "triton/values/specialize.h"
#include "triton/variants/variant.h"

namespace triton {

// Raise the error of a launch that the driver refused.
CULAUNCH_RARE PyObject* RaiseLaunch(const VariantState& variant, const CUlaunchConfig& config,
                                    int ordinal, CUresult code);

// The result of a launch with an empty grid, as with Triton. For a grid that is too large, null
// with a Python error set.
CULAUNCH_RARE PyObject* LaunchNoGrid(const VariantState& variant, const uint32_t* dims);

// Launch with a pointer to each parameter. Returns the call's result, or null with a Python error
// set. An empty grid launches nothing, as with Triton. The variant must live until this returns.
inline PyObject* LaunchVariant(const VariantState& variant, const uint32_t* dims, int ordinal,
                               CUstream stream, void** pointers) {
  const uint64_t width = uint64_t{dims[0]} * variant.ctas;
  // From 1 to the most that CUDA allows: 2^31 - 1, 65535, 65535.
  const bool is_launched =
      (static_cast<int>(width - 1 < INT32_MAX) & static_cast<int>(dims[1] - 1 < UINT16_MAX) &
       static_cast<int>(dims[2] - 1 < UINT16_MAX)) != 0;
  if (CULAUNCH_UNLIKELY(!is_launched)) return LaunchNoGrid(variant, dims);
  CUlaunchConfig config = variant.config;
  config.gridDimX = static_cast<uint32_t>(width);
  config.gridDimY = dims[1];
  config.gridDimZ = dims[2];
  config.hStream = stream;
  CUresult code;
  {
    // The launch waits while the stream's queue is full.
    const ReleaseGil released;
    code = variant.kernel->Launch(config, ordinal, pointers);
  }
  if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
    return RaiseLaunch(variant, config, ordinal, code);
  }
  Py_INCREF(variant.result);
  return variant.result;
}

// The same with the arguments that a specializer read. Descriptors are encoded, and scratch memory
// is allocated.
PyObject* LaunchVariant(const VariantObject& variant, const uint32_t* dims,
                        const Conversion& conversion, Specializer& arguments, PyObject* dispatcher);

}  // namespace triton
