// A call of a Triton kernel, from Python arguments to the launch of the selected variant: first the
// quick path, then the general way if that does not apply.
#pragma once

#include "triton/dispatcher_object.h"
#include "triton/general_call.h"

namespace triton {

// One call. `dims` is a fixed grid; null: `grid` is called with the arguments.
PyObject* CallDispatcher(DispatcherObject* self, PyObject* grid, const uint32_t* dims,
                         PyObject* const* args, size_t count, PyObject* keyword_names,
                         CallMode mode);

// The arguments as Triton describes them: [(type, key), ...].
PyObject* DescribeArguments(DispatcherObject* self, PyObject* const* args, size_t count,
                            PyObject* keyword_names);

}  // namespace triton
