// A call of a Triton kernel, from Python arguments to the launch of the selected variant. The quick
// path comes first, then the general path if the quick one does not apply.
#pragma once

#include "triton/dispatchers/dispatcher_object.h"
#include "triton/general/general_call.h"

namespace triton {

// One call. `dims` is a fixed grid. If it is null, `grid` is called with the arguments.
PyObject* CallDispatcher(DispatcherObject* self, PyObject* grid, const uint32_t* dims,
                         PyObject* const* args, size_t count, PyObject* keyword_names,
                         CallMode mode);

// The arguments as Triton describes them: [(type, key), ...].
PyObject* DescribeArguments(DispatcherObject* self, PyObject* const* args, size_t count,
                            PyObject* keyword_names);

}  // namespace triton
