// torch operators implemented by a Python callable of culaunch. torch's dispatcher calls C++, which
// calls the object's vectorcall.
#pragma once

#include "python/python.h"

namespace torch_operators {

// bind_operator(callable, namespace, name, arguments, keyword_names, results, keys): implement an
// operator for the dispatch keys. `arguments` and `results` have one letter for each value: T
// tensor, L list of tensors, I int, F float, B bool, S str, D dtype. A lowercase letter also allows
// None. The last arguments are given by keyword_names. Returns a number for rebind_operator, or
// None if there is no place left.
PyObject* BindOperator(PyObject* module, PyObject* args);

// rebind_operator(number, callable): replace the callable.
PyObject* RebindOperator(PyObject* module, PyObject* args);

}  // namespace torch_operators
