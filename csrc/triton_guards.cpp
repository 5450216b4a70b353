#include "triton_guards.h"

#include <utility>

TritonGuards::TritonGuards() {
  for (PyObject*& list : empties_) list = PyList_New(0);
}

TritonGuards::~TritonGuards() {
  for (PyObject* list : empties_) Py_XDECREF(list);
}

bool TritonGuards::Look() {
  const uint64_t changes = g_dict_changes;
  for (const Entry& entry : entries_) {
    PyObject* found = PyDict_GetItemWithError(entry.dict.get(), entry.name.get());
    if (found != entry.expected.get()) {
      PyErr_Clear();
      return false;
    }
  }
  held_at_ = changes;
  return true;
}

bool TritonGuards::Set(PyObject* guards, PyObject* lists) {
  std::vector<Entry> entries;
  for (Py_ssize_t i = 0; i < PyTuple_Size(guards); ++i) {
    PyObject* dict = nullptr;
    PyObject* name = nullptr;
    PyObject* expected = nullptr;
    int is_present = 0;
    if (!PyArg_ParseTuple(PyTuple_GetItem(guards, i), "O!OpO", &PyDict_Type, &dict, &name,
                          &is_present, &expected)) {
      return false;
    }
    entries.push_back(
        {Ref::Borrow(dict), Ref::Borrow(name), is_present != 0 ? Ref::Borrow(expected) : Ref()});
  }
  const Py_ssize_t size = PyTuple_Size(lists);
  bool are_lists = size <= kLists;
  for (Py_ssize_t i = 0; i < size; ++i) {
    are_lists = are_lists && PyList_Check(PyTuple_GetItem(lists, i)) != 0;
  }
  if (!are_lists) {
    PyErr_SetString(PyExc_TypeError, "the guards must be at most 4 lists");
    return false;
  }
  is_watched_ = true;
  for (const Entry& entry : entries) is_watched_ = is_watched_ && WatchDict(entry.dict.get());
  held_at_ = g_dict_changes - 1;  // they have not been looked at
  std::swap(entries_, entries);
  for (Py_ssize_t i = 0; i < kLists; ++i) {
    Ref list(i < size ? Ref::Borrow(PyTuple_GetItem(lists, i)).release() : PyList_New(0));
    if (!list) return false;
    Py_DECREF(std::exchange(empties_[i], list.release()));
  }
  return true;
}
