// Detecting that a dict changed without looking into it.
#pragma once

#include <cstdint>

#include "python/python.h"

// Counts the changes of all dicts that are watched.
extern uint64_t g_dict_changes;

// False: code that starts to watch from now on detects no changes, as if the interpreter did not
// support it. The switch of _core.use_shortcut.
extern bool g_dicts_are_watched;

// Watch a dict from now on: each change of it adds one to g_dict_changes. False if the interpreter
// cannot watch, and the entries must be looked up. CPython 3.12 can. Later versions can if they
// also report changes of objects' attributes, which 3.13.0 does not.
bool WatchDict(PyObject* dict);

// Earlier versions have version numbers (PEP 509): no two states of a dict ever share one.
#if !defined(Py_LIMITED_API) && PY_VERSION_HEX < 0x030c0000
#define CULAUNCH_DICTS_HAVE_VERSIONS 1
inline uint64_t DictVersion(PyObject* dict) {
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}
#else
#define CULAUNCH_DICTS_HAVE_VERSIONS 0
#endif
