// The options of a compilation in a normal form, which is part of its cache key.
#pragma once

#include "python/python.h"

// normal_options(std, defines, maxrregcount, switches, extra_options) -> tuple: see _core.pyi.
PyObject* NormalizeOptions(PyObject* module, PyObject* args);

// why_refused(option) -> str.
PyObject* WhyOptionIsRefused(PyObject* module, PyObject* option);
