// Operators of torch whose implementation is a Python callable of ours: torch's dispatcher calls
// C++, which calls the object's vectorcall.
#pragma once

#include "python/python.h"

namespace torch_operators {

// bind_operator(callable, namespace, name, arguments, keyword_names, results, keys):
// implement an operator for the dispatch keys. `arguments` and `results` have a letter for each: T
// tensor, L list of tensors, I int, F float, B bool, S str, D dtype; small: or None. The last
// arguments are given by keyword_names. Returns a number for rebind_operator, or None where there
// is no place left.
PyObject* BindOperator(PyObject* module, PyObject* args);

// rebind_operator(number, callable): let another one be called.
PyObject* RebindOperator(PyObject* module, PyObject* args);

}  // namespace torch_operators
