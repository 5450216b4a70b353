#include "python/call_arguments.h"

Ref PositionalTuple(PyObject* const* args, size_t count) {
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; tuple && i < count; ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), Ref::Borrow(args[i]).release());
  }
  return tuple;
}

Ref KeywordDict(PyObject* const* args, size_t count, PyObject* keyword_names) {
  Ref dict(PyDict_New());
  const Py_ssize_t size = keyword_names != nullptr ? PyTuple_Size(keyword_names) : 0;
  for (Py_ssize_t i = 0; dict && i < size; ++i) {
    if (PyDict_SetItem(dict.get(), PyTuple_GetItem(keyword_names, i),
                       args[count + static_cast<size_t>(i)]) < 0) {
      return Ref();
    }
  }
  return dict;
}

bool FlatArguments::Take(PyObject* args, PyObject* keywords) {
  count = static_cast<size_t>(PyTuple_Size(args));
  for (size_t i = 0; i < count; ++i) {
    values.push_back(PyTuple_GetItem(args, static_cast<Py_ssize_t>(i)));
  }
  if (keywords == nullptr || PyDict_Size(keywords) == 0) return true;
  names = Ref(PyTuple_New(PyDict_Size(keywords)));
  kept = Ref(PyDict_Values(keywords));
  if (!names || !kept) return false;
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  for (Py_ssize_t i = 0; PyDict_Next(keywords, &position, &name, &value) != 0; ++i) {
    if (PyUnicode_Check(name) == 0) {  // CPython checks the names only in vectorcalls
      PyErr_SetString(PyExc_TypeError, "keywords must be strings");
      return false;
    }
    PyTuple_SetItem(names.get(), i, Ref::Borrow(name).release());
    values.push_back(value);
  }
  return true;
}
