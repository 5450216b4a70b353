// The contents of a cache's directory. Programs without Python and this package share the code in
// culaunch's headers. Every function raises OSError if the directory cannot be used.
#pragma once

#include "python/python.h"

// cache_contents(path) -> (entries, temporary files, their bytes): see _core.pyi.
PyObject* ListCache(PyObject* module, PyObject* path);

// evict(path, max_bytes, keep) -> int.
PyObject* EvictFromCache(PyObject* module, PyObject* args);

// clear_cache(path) -> int.
PyObject* ClearCache(PyObject* module, PyObject* path);

// remove_library(path, folder, names) -> bool.
PyObject* RemoveCachedLibrary(PyObject* module, PyObject* args);
