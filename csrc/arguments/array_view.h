// What is read of an array.
#pragma once

#include <cstddef>

#include "formats/dlpack.h"
#include "python/python.h"

// The bytes that an array spans.
struct Extent {
  const void* begin = nullptr;
  size_t bytes = 0;
};

Extent ExtentOf(const DLTensor& tensor);

// A view of an array, valid while the array and `owner` live.
struct ArrayView {
  void* data = nullptr;
  DLDevice device = {0, 0};
  DLDataType dtype = {0, 0, 0};  // bits 0: not known
  Extent extent;
  bool is_read_only = false;
  Ref owner;
};
