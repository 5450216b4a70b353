// Noticing that a dict changed without looking into it.
#pragma once

#include <cstdint>

#include "python/python.h"

// Counts the changes of all dicts that are watched.
extern uint64_t g_dict_changes;

// False: code that starts to watch from now on does not notice changes, as if the interpreter could
// not. The switch of _core.use_shortcut.
extern bool g_dicts_are_watched;

// Watch a dict from now on: each change of it adds one to g_dict_changes. False if the interpreter
// cannot watch, and the entries must be looked up. CPython 3.12 can, and so can versions after
// 3.13.0 that also notice changes of objects' attributes.
bool WatchDict(PyObject* dict);

// Before watchers there were versions (PEP 509): a number that no other state of a dict ever had.
#if !defined(Py_LIMITED_API) && PY_VERSION_HEX < 0x030c0000
#define CULAUNCH_DICTS_HAVE_VERSIONS 1
inline uint64_t DictVersion(PyObject* dict) {
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}
#else
#define CULAUNCH_DICTS_HAVE_VERSIONS 0
#endif
