#include "python/guards.h"

#include <algorithm>
#include <utility>

#include "python/function_parts.h"

namespace {

// Whether a dict has exactly these names, as identical objects and in this order.
bool HasNames(PyObject* dict, PyObject* names) {
  const Py_ssize_t size = PyTuple_Size(names);
  if (PyDict_Size(dict) != size) return false;
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (PyDict_Next(dict, &position, &name, &value) == 0) return false;
    if (name != PyTuple_GetItem(names, i)) return false;
  }
  return true;
}

}  // namespace

Guards::Guards() {
  for (List& one : lists_) one = {PyList_New(0), 0};
}

Guards::~Guards() {
  for (const List& one : lists_) Py_XDECREF(one.list);
}

bool Guards::MoreHold() const {
  for (const Item& one : items_) {
    PyObject* holder = one.holder.get();
    if (PyList_Check(holder) != 0) {
      if (PyList_Size(holder) == 0) return false;
      if (PyList_GetItem(holder, 0) != one.expected.get()) return false;
      continue;
    }
    const Ref found = ContentsOf(holder);
    if (!found) PyErr_Clear();  // it was deleted
    if (found.get() != one.expected.get()) return false;
  }
  return true;
}

bool Guards::Look() {
  const uint64_t changes = g_dict_changes;
  // Comparing a dict's other keys may run Python, which may set other guards.
  const std::shared_ptr<const Entries> entries = entries_;
#if CULAUNCH_DICTS_HAVE_VERSIONS
  std::vector<Version> versions = versions_;
  for (Version& one : versions) one.held = DictVersion(one.dict);
#endif
  for (const Entry& entry : *entries) {
    if (!entry.name) {
      if (!HasNames(entry.dict.get(), entry.expected.get())) return false;
      continue;
    }
    PyObject* found = PyDict_GetItemWithError(entry.dict.get(), entry.name.get());
    if (found != entry.expected.get()) {
      PyErr_Clear();
      return false;
    }
  }
  if (entries != entries_) return false;
  if (is_watched_) held_at_ = changes;
#if CULAUNCH_DICTS_HAVE_VERSIONS
  versions_ = std::move(versions);
#endif
  return true;
}

bool Guards::Set(PyObject* guards, PyObject* hooks, PyObject* lists, PyObject* cells) {
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
    if (name == Py_None) {
      if (PyTuple_Size(expected) < 0) return false;
      entries->push_back({Ref::Borrow(dict), Ref(), Ref::Borrow(expected)});
      continue;
    }
    entries->push_back(
        {Ref::Borrow(dict), Ref::Borrow(name), is_present != 0 ? Ref::Borrow(expected) : Ref()});
  }
  const Py_ssize_t hook_count = PyTuple_Size(hooks);
  const Py_ssize_t size = hook_count + PyTuple_Size(lists);
  if (size > kLists) {
    PyErr_Format(PyExc_ValueError, "at most %zd lists can be guarded", kLists);
    return false;
  }
  List given[kLists];
  for (Py_ssize_t i = 0; i < hook_count; ++i) {
    given[i] = {PyTuple_GetItem(hooks, i), 0};
    if (PyList_Check(given[i].list) == 0) {
      PyErr_SetString(PyExc_TypeError, "hooks are in lists");
      return false;
    }
  }
  std::vector<Item> items;
  for (Py_ssize_t i = hook_count; i < size; ++i) {
    PyObject* first = nullptr;
    if (!PyArg_ParseTuple(PyTuple_GetItem(lists, i - hook_count), "O!nO", &PyList_Type,
                          &given[i].list, &given[i].size, &first)) {
      return false;
    }
    if (first != Py_None) items.push_back({Ref::Borrow(given[i].list), Ref::Borrow(first)});
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(cells); ++i) {
    PyObject* cell = nullptr;
    PyObject* expected = nullptr;
    if (!PyArg_ParseTuple(PyTuple_GetItem(cells, i), "OO", &cell, &expected)) return false;
    items.push_back({Ref::Borrow(cell), Ref::Borrow(expected)});
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
  is_watched_ = g_dicts_are_watched;
#else
  is_watched_ = true;
  for (const Entry& entry : *entries) is_watched_ = is_watched_ && WatchDict(entry.dict.get());
#endif
  held_at_ = g_dict_changes - 1;  // not checked yet
  const std::shared_ptr<const Entries> before = std::exchange(entries_, std::move(entries));
  std::swap(items_, items);
  has_more_ = !items_.empty();
  hooks_ = size > hook_count ? hook_count : kLists;
  for (Py_ssize_t i = 0; i < kLists; ++i) {
    // Unused slots repeat the last list, so a call touches no more memory than it must.
    const Py_ssize_t from = std::min(i, size - 1);
    Ref list(size != 0 ? Ref::Borrow(given[from].list).release() : PyList_New(0));
    if (!list) return false;
    lists_[i].size = size != 0 ? given[from].size : 0;
    Py_DECREF(std::exchange(lists_[i].list, list.release()));
  }
  return true;
}

int Guards::Traverse(visitproc visit, void* arg) const {
  for (const List& one : lists_) Py_VISIT(one.list);
  for (const Item& one : items_) {
    Py_VISIT(one.holder.get());
    Py_VISIT(one.expected.get());
  }
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
  const std::vector<Item> items = std::move(items_);
  items_.clear();
  has_more_ = false;
  const auto before = std::exchange(entries_, std::make_shared<Entries>());
}
