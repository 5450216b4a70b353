#include "python/tuples.h"

#include <cstring>

size_t g_tuple_items = 0;

namespace {

size_t found = 0;  // by the trial

// Whether tuples of one to four items hold them there.
bool AreAt(size_t offset) {
  for (Py_ssize_t size = 1; size <= 4; ++size) {
    const Ref tuple(PyTuple_New(size));
    if (!tuple || Py_SIZE(tuple.get()) != size) return false;
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyTuple_SetItem(tuple.get(), i, PyList_New(0));  // an object that is nowhere else
    }
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* item;
      std::memcpy(&item,
                  reinterpret_cast<const char*>(tuple.get()) + offset +
                      static_cast<size_t>(i) * sizeof item,
                  sizeof item);
      if (item == nullptr || item != PyTuple_GetItem(tuple.get(), i)) return false;
    }
  }
  return true;
}

}  // namespace

void TryTuples() {
  // Behind the size there is an item, or a hash and an item: one word of a tuple is never read
  // that it lacks.
  for (const size_t offset : {sizeof(PyVarObject), sizeof(PyVarObject) + sizeof(Py_hash_t)}) {
    if (found == 0 && AreAt(offset)) found = offset;
  }
  PyErr_Clear();
  UseTuples(true);
}

void UseTuples(bool use) { g_tuple_items = use ? found : 0; }
