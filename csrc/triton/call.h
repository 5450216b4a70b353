// A call of a Triton kernel, from Python arguments to the launch of the variant that they select:
// the quick path first, and the general way where that does not serve.
#pragma once

#include "triton/dispatcher_object.h"
#include "triton/general_call.h"

namespace triton {

// One call. `dims` is a fixed grid; null: `grid` is called with the arguments.
PyObject* CallDispatcher(DispatcherObject* self, PyObject* grid, const uint32_t* dims,
                         PyObject* const* args, size_t count, PyObject* keyword_names,
                         CallMode mode);

// What the arguments are in Triton's words: [(type, key), ...].
PyObject* DescribeArguments(DispatcherObject* self, PyObject* const* args, size_t count,
                            PyObject* keyword_names);

}  // namespace triton
