#include "dict_watch.h"

#ifndef _WIN32
#include <dlfcn.h>
#endif

uint64_t g_dict_changes = 0;

namespace {

// PyDict_AddWatcher and PyDict_Watch are public, but not part of the stable ABI.
using Callback = int (*)(int event, PyObject* dict, PyObject* key, PyObject* value);
using AddWatcher = int (*)(Callback);
using Watch = int (*)(int watcher, PyObject* dict);

int CountChange(int, PyObject*, PyObject*, PyObject*) {
  ++g_dict_changes;
  return 0;
}

struct Watcher {
  Watcher() {
#if !defined(_WIN32) && !defined(Py_GIL_DISABLED)
    const auto add = reinterpret_cast<AddWatcher>(dlsym(RTLD_DEFAULT, "PyDict_AddWatcher"));
    watch = reinterpret_cast<Watch>(dlsym(RTLD_DEFAULT, "PyDict_Watch"));
    if (add != nullptr) number = add(CountChange);
    if (number < 0) PyErr_Clear();  // an interpreter has eight, and all are taken
#endif
  }

  Watch watch = nullptr;
  int number = -1;
};

}  // namespace

bool WatchDict(PyObject* dict) {
  static const Watcher watcher;
  if (watcher.watch == nullptr || watcher.number < 0) return false;
  if (watcher.watch(watcher.number, dict) == 0) return true;
  PyErr_Clear();
  return false;
}
