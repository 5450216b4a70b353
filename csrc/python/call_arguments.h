// The arguments of a vectorcall as a method in Python takes them, and the other way.
#pragma once

#include <vector>

#include "python/python.h"

// Those without a name, and those with one; null with a Python error set.
Ref PositionalTuple(PyObject* const* args, size_t count);
Ref KeywordDict(PyObject* const* args, size_t count, PyObject* keyword_names);

// The arguments of a method in Python as a vectorcall has them.
struct FlatArguments {
  // False with a Python error set. `keywords`: a dict, or null.
  bool Take(PyObject* args, PyObject* keywords);

  std::vector<PyObject*> values;  // borrowed: of the tuple, and of `kept`
  size_t count = 0;               // of those without a name
  Ref names;                      // null: there are no keywords
  Ref kept;                       // the items of the dict, which Python may change
};
