#include "python/dict_watch.h"

#ifndef _WIN32
#include <dlfcn.h>
#endif

uint64_t g_dict_changes = 0;
bool g_dicts_are_watched = true;

namespace {

// PyDict_AddWatcher and PyDict_Watch are public, but not part of the stable ABI.
using Callback = int (*)(int event, PyObject* dict, PyObject* key, PyObject* value);
using AddWatcher = int (*)(Callback);
using WatchFunction = int (*)(int watcher, PyObject* dict);

int CountChange(int, PyObject*, PyObject*, PyObject*) {
  ++g_dict_changes;
  return 0;
}

class Watcher {
 public:
  Watcher() {
#if !defined(_WIN32) && !defined(Py_GIL_DISABLED)
    const auto add = reinterpret_cast<AddWatcher>(dlsym(RTLD_DEFAULT, "PyDict_AddWatcher"));
    watch_ = reinterpret_cast<WatchFunction>(dlsym(RTLD_DEFAULT, "PyDict_Watch"));
    if (add != nullptr && watch_ != nullptr) number_ = add(CountChange);
    is_good_ = number_ >= 0 && NoticesAttributes();
    PyErr_Clear();  // an interpreter has eight watchers, and all may be taken
#endif
  }

  bool Watch(PyObject* dict) const { return is_good_ && watch_(number_, dict) == 0; }

 private:
  // An object's attributes may be stored outside its dict. CPython 3.13.0 does not report their
  // changes.
  bool NoticesAttributes() const {
    const Ref type(
        PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(){}", "Watched"));
    const Ref object(type ? PyObject_CallObject(type.get(), nullptr) : nullptr);
    if (!object || PyObject_SetAttrString(object.get(), "old", Py_None) != 0) return false;
    const Ref dict(PyObject_GetAttrString(object.get(), "__dict__"));
    if (!dict || watch_(number_, dict.get()) != 0) return false;
    const auto is_noticed = [&](const char* name, PyObject* value) {
      const uint64_t before = g_dict_changes;
      return PyObject_SetAttrString(object.get(), name, value) == 0 && g_dict_changes != before;
    };
    return is_noticed("new", Py_None) && is_noticed("new", Py_True) && is_noticed("old", Py_True) &&
           is_noticed("new", nullptr);
  }

  WatchFunction watch_ = nullptr;
  int number_ = -1;
  bool is_good_ = false;
};

}  // namespace

bool WatchDict(PyObject* dict) {
  if (!g_dicts_are_watched) return false;
  static const Watcher watcher;
  if (watcher.Watch(dict)) return true;
  PyErr_Clear();
  return false;
}
