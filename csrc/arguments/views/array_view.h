// The properties that are read from an array.
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

// Whether the elements are contiguous in C order. Null strides mean that they are.
inline bool IsContiguous(const int64_t* shape, const int64_t* strides, int ndim) {
  if (strides == nullptr) return true;
  int64_t dense = 1;
  bool is_dense = true;
  for (int i = ndim; i-- > 0;) {
    if (shape[i] == 0) return true;
    is_dense = is_dense && (shape[i] == 1 || strides[i] == dense);
    dense *= shape[i];
  }
  return is_dense;
}

// A view of an array, valid while the array and `owner` live.
struct ArrayView {
  void* data = nullptr;
  DLDevice device = {0, 0};
  DLDataType dtype = {0, 0, 0};  // bits 0: not known
  Extent extent;
  bool is_read_only = false;
  Ref owner;
};
