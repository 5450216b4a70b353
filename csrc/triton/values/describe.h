// Converting a key's words back into Triton's terms.
#pragma once

#include "python/python.h"
#include "triton/values/specialize.h"

namespace triton {

// Triton's (type, key) pair for the argument at *position of a key. The position advances.
PyObject* DescribeWords(const Words& key, size_t* position, const Parameter& parameter,
                        const Interner& interner);

}  // namespace triton
