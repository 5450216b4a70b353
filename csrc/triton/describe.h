// A key's words back in Triton's own.
#pragma once

#include "python/python.h"
#include "triton/specialize.h"

namespace triton {

// Triton's words for the argument at *position of a key, a pair (type, key); the position moves on.
PyObject* DescribeWords(const Words& key, size_t* position, const Parameter& parameter,
                        const Interner& interner);

}  // namespace triton
