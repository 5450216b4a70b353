// The demangler, for Python and for the messages of culaunch's headers in this process.
#pragma once

#include "python/python.h"

// demangle(name) -> str: the C++ spelling of a mangled name, or the name itself.
PyObject* DemangleName(PyObject* module, PyObject* name);
extern const char kDemangleDoc[];

// mangled_param_types(name) -> tuple[str, ...] | None.
PyObject* MangledParamTypes(PyObject* module, PyObject* name);
extern const char kMangledParamTypesDoc[];
