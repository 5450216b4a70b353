// Reading the items of a tuple without a call into Python.
#pragma once

#include <cstddef>

#include "python/python.h"

// Where a tuple's items lie: behind its size, or, from 3.14 on, behind its hash. The structure is
// no part of CPython's stable ABI: the place is used where reading trial tuples, when the module is
// imported, gives just what the C API gives. 0: not known.
extern size_t g_tuple_items;

// Make the trial.
void TryTuples();
// As if it had failed, or as it turned out: the switch of _core.use_shortcut.
void UseTuples(bool use);

inline PyObject* TupleItem(PyObject* tuple, Py_ssize_t index) {
  if (CULAUNCH_UNLIKELY(g_tuple_items == 0)) return PyTuple_GetItem(tuple, index);
  return reinterpret_cast<PyObject* const*>(reinterpret_cast<const char*>(tuple) +
                                            g_tuple_items)[index];
}
