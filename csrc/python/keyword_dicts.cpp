#include "python/keyword_dicts.h"

#include <string>

bool g_keyword_dicts_are_known = false;

namespace {

bool are_as_believed = false;  // what the trial found

// Whether a dict of so many names is read as the C API reads it, and one with another key, or with
// an entry deleted, is not read at all. Nobody asks for that before Python 3.11.
[[maybe_unused]] bool IsReadRight(size_t count) {
  const Ref dict(PyDict_New());
  for (size_t i = 0; dict && i < count; ++i) {
    const Ref value(PyList_New(0));  // an object that is nowhere else
    const std::string name = "n" + std::to_string(i);
    if (!value || PyDict_SetItemString(dict.get(), name.c_str(), value.get()) < 0) return false;
  }
  if (!dict) return false;
  const keyword_dicts::Entry* entry = EntriesOf(dict.get(), count);
  if (entry == nullptr || EntriesOf(dict.get(), count + 1) != nullptr) return false;
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict.get(), &position, &name, &value) != 0) {
    if (entry->name != name || entry->value != value) return false;
    ++entry;
  }
  if (PyDict_SetItem(dict.get(), Py_None, Py_None) < 0) return false;
  if (EntriesOf(dict.get(), count + 1) != nullptr || PyDict_DelItem(dict.get(), Py_None) < 0) {
    return false;
  }
  return EntriesOf(dict.get(), count) == nullptr;
}

}  // namespace

void TryKeywordDicts() {
#if !defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030b0000
  // Of a version that nobody has seen the trial itself may read what is not there.
  if (sizeof(void*) != 8 || sizeof(PyObject) != 16 || Py_Version >= 0x030f0000) return;
  g_keyword_dicts_are_known = true;  // for the trial
  are_as_believed = true;
  for (const size_t count : {1, 5, 6, 16, 28, 100, 300}) {
    are_as_believed = are_as_believed && IsReadRight(count);
  }
  PyErr_Clear();
  UseKeywordDicts(true);
#endif
}

void UseKeywordDicts(bool use) { g_keyword_dicts_are_known = use && are_as_believed; }
