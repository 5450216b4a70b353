// Python's own functions, for code that a body calls. If the argument is a stand-in, they ask the
// body.
#pragma once

#include "python/python.h"

// asking(name, builtins, answer, kinds): a replacement for the builtin "isinstance", "id" or
// "type". It calls `answer` if its first argument is an object of one of `kinds`.
PyObject* MakeAsking(PyObject* self, PyObject* args);

// asking_import(builtins, is, is_not, modules): an __import__ that answers comparisons by identity,
// which are imports of these two names. `modules` maps a module to its replacement.
PyObject* MakeAskingImport(PyObject* self, PyObject* args);

// While a body is followed, operator.is_ and operator.is_not ask it. Other packages hold these two
// functions themselves, so they cannot be replaced by others.
void AnswerOperators(bool on);
