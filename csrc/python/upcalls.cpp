#include "python/upcalls.h"

#include <atomic>
#include <cstring>

namespace {

// The functions are never freed: a call may be under way in one that is replaced.
struct Entry {
  const char* part;
  const char* name;
  std::atomic<PyObject*> function;
};

Entry entries[] = {
#define CULAUNCH_UPCALL(upcall, part, name) {part, name, {nullptr}},
    CULAUNCH_UPCALLS(CULAUNCH_UPCALL)
#undef CULAUNCH_UPCALL
};

bool SetPart(const char* part, PyObject* functions) {
  bool is_known = false;
  for (Entry& entry : entries) {
    if (std::strcmp(entry.part, part) != 0) continue;
    is_known = true;
    PyObject* function = PyObject_GetAttrString(functions, entry.name);
    if (function == nullptr) return false;
    entry.function.store(function, std::memory_order_release);
  }
  if (!is_known) PyErr_Format(PyExc_TypeError, "the extension calls no part named %s", part);
  return is_known;
}

}  // namespace

PyObject* FunctionOf(Upcall upcall) {
  const Entry& entry = entries[static_cast<int>(upcall)];
  PyObject* function = entry.function.load(std::memory_order_acquire);
  if (function == nullptr) {
    PyErr_Format(PyExc_RuntimeError, "the extension needs %s of culaunch's part %s: import that",
                 entry.name, entry.part);
  }
  return function;
}

PyObject* SetUpcalls(PyObject*, PyObject* args, PyObject* keywords) {
  if (PyTuple_Size(args) != 0) {
    PyErr_SetString(PyExc_TypeError, "set_upcalls takes keywords only");
    return nullptr;
  }
  Py_ssize_t position = 0;
  PyObject *part, *functions;
  while (keywords != nullptr && PyDict_Next(keywords, &position, &part, &functions) != 0) {
    const char* text = PyUnicode_AsUTF8AndSize(part, nullptr);
    if (text == nullptr || !SetPart(text, functions)) return nullptr;
  }
  Py_RETURN_NONE;
}
