// The arguments of a vectorcall as a method in Python takes them.
#pragma once

#include "python/python.h"

// Those without a name, and those with one; null with a Python error set.
Ref PositionalTuple(PyObject* const* args, size_t count);
Ref KeywordDict(PyObject* const* args, size_t count, PyObject* keyword_names);
