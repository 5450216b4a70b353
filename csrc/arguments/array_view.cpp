#include "arguments/array_view.h"

namespace {

bool Repeats(const DLTensor& tensor) {
  bool repeats = false;
  for (int32_t i = 0; i < tensor.ndim && tensor.strides != nullptr; ++i) {
    if (tensor.shape[i] == 0) return false;
    repeats = repeats || (tensor.shape[i] > 1 && tensor.strides[i] == 0);
  }
  return repeats;
}

// What a method without arguments gives, as a number; 0 where it gives none.
uint64_t Asked(PyObject* object, const char* method) {
  const Ref found(PyObject_CallMethod(object, method, nullptr));
  const uint64_t number = found ? PyLong_AsUnsignedLongLongMask(found.get()) : 0;
  return PyErr_Occurred() == nullptr ? number : 0;
}

}  // namespace

CULAUNCH_APART Extent ReachOf(PyObject* object, const DLTensor& tensor) {
  const Extent extent = ExtentOf(tensor);
  if (!Repeats(tensor)) return extent;
  const Ref storage(PyObject_CallMethod(object, "untyped_storage", nullptr));
  const uint64_t begin = storage ? Asked(storage.get(), "data_ptr") : 0;
  const uint64_t bytes = begin != 0 ? Asked(storage.get(), "nbytes") : 0;
  PyErr_Clear();  // of another framework, or with methods of its own: the view, then
  const auto first = reinterpret_cast<uintptr_t>(extent.begin);
  const bool has_it = begin <= first && first + extent.bytes <= begin + bytes;
  return has_it ? Extent{reinterpret_cast<const void*>(begin), bytes} : extent;
}

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
