// The files that a source can include, and the keys of the cache. Programs without Python and this
// package share the code in culaunch's headers.
#pragma once

#include "python/python.h"

// follow(text, path, search) -> tuple: see _core.pyi.
PyObject* FollowSource(PyObject* module, PyObject* args);

// look_at(paths) -> (found, lacking, absent): see _core.pyi.
PyObject* LookAt(PyObject* module, PyObject* paths);

// source_facts(text) -> (digest, names no file).
PyObject* SourceFacts(PyObject* module, PyObject* text);

// cache_key(backend, identity, archs, source_digest, name, includes_digest, flags, names, lto,
// dirs) -> str.
PyObject* ImageKey(PyObject* module, PyObject* args);

// includes_key(source_digest, path, headers_digest, search, system) -> str.
PyObject* SourceIncludesKey(PyObject* module, PyObject* args);
