// Launching a variant of a Triton kernel.
#pragma once

#include "triton_specialize.h"
#include "triton_variant.h"

// Raise why the driver refused a launch.
CULAUNCH_RARE PyObject* RaiseTritonLaunch(const TritonVariantState& variant,
                                          const CUlaunchConfig& config, int ordinal, CUresult code);

// Launch with a pointer to each parameter: what the call gives, or null with a Python error set.
// An empty grid launches nothing, as with Triton. The variant must live until this returns.
inline PyObject* LaunchTriton(const TritonVariantState& variant, const uint32_t* dims, int ordinal,
                              CUstream stream, void** pointers) {
  CUlaunchConfig config = variant.config;
  config.gridDimX = dims[0] * variant.ctas;
  config.gridDimY = dims[1];
  config.gridDimZ = dims[2];
  config.hStream = stream;
  const bool is_empty = (static_cast<int>(dims[0] == 0) | static_cast<int>(dims[1] == 0) |
                         static_cast<int>(dims[2] == 0)) != 0;
  if (!CULAUNCH_UNLIKELY(is_empty)) {
    CUresult code;
    {
      // The launch waits while the stream's queue is full.
      const ReleaseGil released;
      code = variant.kernel->Launch(config, ordinal, pointers);
    }
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      return RaiseTritonLaunch(variant, config, ordinal, code);
    }
  }
  Py_INCREF(variant.result);
  return variant.result;
}

// Likewise with the arguments that a specializer read: descriptors are encoded, and scratch memory
// is allocated.
PyObject* LaunchTriton(const TritonVariantObject& variant, const uint32_t* dims, const Call& call,
                       Specializer& arguments, PyObject* dispatcher);
