// A str as a std::string.
#pragma once

#include <string>

#include "python/python.h"

// Empty, with a Python error set, for a str that UTF-8 cannot encode.
inline std::string TextOf(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  return data != nullptr ? std::string(data, static_cast<size_t>(size)) : std::string();
}
