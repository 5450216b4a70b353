// Text and paths between Python and culaunch's headers, which use only bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "python/python.h"

// The bytes of a str; false with a Python error set. Bytes that were not UTF-8 are restored.
bool ReadBytes(PyObject* text, std::string* bytes);

// The bytes of a path, as the file system stores them.
bool ReadPath(PyObject* path, std::string* bytes);

// Read each item of a sequence with one of these functions.
bool ReadEach(PyObject* items, bool (*read)(PyObject*, std::string*),
              std::vector<std::string>* found);

Ref MakeText(std::string_view bytes);
Ref MakePath(std::string_view bytes);

// A tuple of the results of `make` for each item.
template <class List, class Make>
Ref MakeTuple(const List& items, const Make& make) {
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  Py_ssize_t index = 0;
  for (const auto& item : items) {
    if (!tuple) return tuple;
    Ref made = make(item);
    if (!made) return Ref();
    PyTuple_SetItem(tuple.get(), index++, made.release());
  }
  return tuple;
}
