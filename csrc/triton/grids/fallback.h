// The fallback of an installed kernel that cannot be launched natively. Triton launches it, with no
// visible difference.
#pragma once

#include "python/python.h"

namespace triton {

// _core.TritonFallback: raised if Triton takes over a call. Its text is the reason.
extern PyObject* g_triton_fallback;

// Convert the current Python error into this exception, with the same text.
CULAUNCH_RARE void RaiseFallback();

int AddTritonFallback(PyObject* module);

}  // namespace triton
