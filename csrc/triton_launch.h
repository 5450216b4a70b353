// Launching a variant of a Triton kernel.
#pragma once

#include "triton_specialize.h"
#include "triton_variant.h"

// Launch with a pointer to each parameter: what the call gives, or null with a Python error set.
// An empty grid launches nothing, as with Triton.
PyObject* LaunchTriton(const TritonVariantObject& variant, const uint32_t* dims, int ordinal,
                       CUstream stream, void** pointers);

// Likewise with the arguments that a specializer read: descriptors are encoded, and scratch memory
// is allocated.
PyObject* LaunchTriton(const TritonVariantObject& variant, const uint32_t* dims, const Call& call,
                       Specializer& arguments, PyObject* dispatcher);
