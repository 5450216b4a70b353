#include "arguments/views/storage.h"

#include "arguments/views/array_interface.h"

namespace {

// The result of a method without arguments, as a number; 0 if it is not one.
uint64_t Asked(PyObject* object, const char* method) {
  const Ref found(PyObject_CallMethod(object, method, nullptr));
  const uint64_t number = found ? PyLong_AsUnsignedLongLongMask(found.get()) : 0;
  return PyErr_Occurred() == nullptr ? number : 0;
}

// The last array in a NumPy array's chain of bases; null if it is not a view.
Ref BaseOf(PyObject* array) {
  Ref last;
  for (Ref base = Ref::Borrow(array);;) {
    base = Ref(PyObject_GetAttrString(base.get(), "base"));
    // A base without this interface is another kind of memory, and the previous array has all of
    // it.
    if (!base || PyObject_HasAttrString(base.get(), "__array_interface__") == 0) break;
    last = Ref::Borrow(base.get());
  }
  PyErr_Clear();
  return last;
}

Storage StorageOfBase(PyObject* array) {
  ArrayView view;
  const Ref base = BaseOf(array);
  if (!base || !ReadHostInterface(base.get(), &view)) return PyErr_Clear(), Storage();
  return {view.extent, view.is_read_only};
}

Storage StorageOfTensor(PyObject* storage) {
  const uint64_t begin = Asked(storage, "data_ptr");
  const uint64_t bytes = begin != 0 ? Asked(storage, "nbytes") : 0;
  PyErr_Clear();
  return {{reinterpret_cast<const void*>(begin), bytes}};
}

}  // namespace

CULAUNCH_APART Storage StorageOf(PyObject* object, const Extent& view) {
  const Ref own(PyObject_CallMethod(object, "untyped_storage", nullptr));
  if (!own) PyErr_Clear();  // another framework, or overridden methods
  const Storage storage = own ? StorageOfTensor(own.get()) : StorageOfBase(object);
  const auto begin = reinterpret_cast<uintptr_t>(storage.extent.begin);
  const auto first = reinterpret_cast<uintptr_t>(view.begin);
  const bool has_view = begin <= first && first + view.bytes <= begin + storage.extent.bytes;
  return has_view && view.bytes < storage.extent.bytes ? storage : Storage();
}
