// Conversion between the arguments of a vectorcall and of a Python method.
#pragma once

#include <vector>

#include "python/python.h"

// The positional arguments, and the keyword arguments. Null with a Python error set.
Ref PositionalTuple(PyObject* const* args, size_t count);
Ref KeywordDict(PyObject* const* args, size_t count, PyObject* keyword_names);

// The arguments of a Python method in the form of a vectorcall.
struct FlatArguments {
  // False with a Python error set. `keywords`: a dict, or null.
  bool Take(PyObject* args, PyObject* keywords);

  std::vector<PyObject*> values;  // borrowed from the tuple and from `kept`
  size_t count = 0;               // of positional arguments
  Ref names;                      // null if there are no keywords
  Ref kept;                       // the items of the dict, which Python may change
};
