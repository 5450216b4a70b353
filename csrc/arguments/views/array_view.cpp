#include "arguments/views/array_view.h"

Extent ExtentOf(const DLTensor& tensor) {
  const int64_t item = (int64_t{tensor.dtype.bits} * tensor.dtype.lanes + 7) / 8;
  int64_t before = 0;
  int64_t after = 0;
  int64_t dense = 1;
  char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    const int64_t stride = tensor.strides != nullptr ? tensor.strides[i] : dense;
    if (tensor.shape[i] == 0) return {data, 0};
    dense *= tensor.shape[i];
    (stride < 0 ? before : after) += (tensor.shape[i] - 1) * stride;
  }
  return {data + before * item, static_cast<size_t>((after - before + 1) * item)};
}
