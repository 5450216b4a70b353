#include "triton/guards.h"

#include <algorithm>
#include <utility>

namespace triton {

Guards::Guards() {
  for (PyObject*& list : empties_) list = PyList_New(0);
}

Guards::~Guards() {
  for (PyObject* list : empties_) Py_XDECREF(list);
}

bool Guards::Look() {
  const uint64_t changes = g_dict_changes;
  // Other keys of a dict may be objects whose comparison is Python, which may set other guards.
  const std::shared_ptr<const Entries> entries = entries_;
#if CULAUNCH_DICTS_HAVE_VERSIONS
  std::vector<Version> versions = versions_;
  for (Version& one : versions) one.held = DictVersion(one.dict);
#endif
  for (const Entry& entry : *entries) {
    PyObject* found = PyDict_GetItemWithError(entry.dict.get(), entry.name.get());
    if (found != entry.expected.get()) {
      PyErr_Clear();
      return false;
    }
  }
  if (entries != entries_) return false;
  held_at_ = changes;
#if CULAUNCH_DICTS_HAVE_VERSIONS
  versions_ = std::move(versions);
#endif
  return true;
}

bool Guards::Set(PyObject* guards, PyObject* lists) {
  auto entries = std::make_shared<Entries>();
  for (Py_ssize_t i = 0; i < PyTuple_Size(guards); ++i) {
    PyObject* dict = nullptr;
    PyObject* name = nullptr;
    PyObject* expected = nullptr;
    int is_present = 0;
    if (!PyArg_ParseTuple(PyTuple_GetItem(guards, i), "O!OpO", &PyDict_Type, &dict, &name,
                          &is_present, &expected)) {
      return false;
    }
    entries->push_back(
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
#if CULAUNCH_DICTS_HAVE_VERSIONS
  std::vector<Version> versions;
  for (const Entry& entry : *entries) {
    const bool is_known = std::any_of(versions.begin(), versions.end(), [&](const Version& one) {
      return one.dict == entry.dict.get();
    });
    if (!is_known) versions.push_back({entry.dict.get(), 0});
  }
  versions_ = std::move(versions);
  is_watched_ = true;
#else
  is_watched_ = true;
  for (const Entry& entry : *entries) is_watched_ = is_watched_ && WatchDict(entry.dict.get());
#endif
  held_at_ = g_dict_changes - 1;  // they have not been looked at
  const std::shared_ptr<const Entries> before = std::exchange(entries_, std::move(entries));
  for (Py_ssize_t i = 0; i < kLists; ++i) {
    Ref list(i < size ? Ref::Borrow(PyTuple_GetItem(lists, i)).release() : PyList_New(0));
    if (!list) return false;
    Py_DECREF(std::exchange(empties_[i], list.release()));
  }
  return true;
}

int Guards::Traverse(visitproc visit, void* arg) const {
  for (PyObject* list : empties_) Py_VISIT(list);
  for (const Entry& entry : *entries_) {
    Py_VISIT(entry.dict.get());
    Py_VISIT(entry.name.get());
    Py_VISIT(entry.expected.get());
  }
  return 0;
}

void Guards::Clear() {
#if CULAUNCH_DICTS_HAVE_VERSIONS
  versions_.clear();
#endif
  // Freeing them may run Python.
  const auto before = std::exchange(entries_, std::make_shared<Entries>());
}

}  // namespace triton
