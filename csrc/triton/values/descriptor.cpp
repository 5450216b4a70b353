#include "triton/values/descriptor.h"

namespace triton {

namespace {

// Ints from a sequence. False with a Python error set.
bool ReadInts(PyObject* object, const char* attribute, uint64_t* numbers, int* count) {
  const Ref sequence(PyObject_GetAttrString(object, attribute));
  const Ref items(sequence ? PySequence_Tuple(sequence.get()) : nullptr);
  if (!items) return false;
  const Py_ssize_t size = PyTuple_Size(items.get());
  if (size < 1 || size > kMostRank) {
    PyErr_Format(PyExc_ValueError, "%s of a tensor descriptor must have 1 to %d entries (got %zd)",
                 attribute, kMostRank, size);
    return false;
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    numbers[i] = static_cast<uint64_t>(PyLong_AsLongLong(PyTuple_GetItem(items.get(), i)));
  }
  *count = static_cast<int>(size);
  return PyErr_Occurred() == nullptr;
}

// Whether an attribute, which older versions of Triton lack, passes a test.
template <class Test>
bool HasAttribute(PyObject* object, const char* name, Test&& test) {
  const Ref value(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return value && test(value.get());
}

}  // namespace

bool ReadDescriptor(PyObject* object, TensorDescriptor* descriptor, DescriptorBlock* block) {
  int stride_rank = 0;
  if (!ReadInts(object, "block_shape", block->sizes, &block->rank) ||
      !ReadInts(object, "shape", descriptor->shape, &descriptor->rank) ||
      !ReadInts(object, "strides", descriptor->strides, &stride_rank)) {
    return false;
  }
  if (stride_rank != descriptor->rank) {
    PyErr_SetString(PyExc_ValueError, "a tensor descriptor needs one stride per dimension");
    return false;
  }
  const bool fills_nan = HasAttribute(object, "padding", [](PyObject* padding) {
    return PyUnicode_Check(padding) && PyUnicode_CompareWithASCIIString(padding, "nan") == 0;
  });
  const bool rounds = HasAttribute(object, "round_f32_to_tf32",
                                   [](PyObject* value) { return PyObject_IsTrue(value) == 1; });
  descriptor->fills_nan = fills_nan ? 1 : 0;
  descriptor->rounds_to_tf32 = rounds ? 1 : 0;
  return PyErr_Occurred() == nullptr;
}

}  // namespace triton
