// The memory behind a view.
#pragma once

#include "arguments/views/array_view.h"

// The memory that an array is a view of, for a driver that checks each access. Kernels may get
// other shapes and strides, and access memory around the view, as on a GPU.
struct Storage {
  Extent extent;  // bytes 0: the view covers all of it, or its size is not known
  bool is_read_only = false;
};

// The storage of a PyTorch tensor, or the last array that a NumPy array is a view of. This may run
// Python.
Storage StorageOf(PyObject* object, const Extent& view);
