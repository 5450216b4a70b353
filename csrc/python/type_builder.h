// A type of the extension, described part by part.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "python/python.h"

// Collects the members of a type, and makes the tables that CPython reads. Types and their tables
// live as long as the process.
class TypeBuilder {
 public:
  // Its full name, the size of its objects, and flags that no method below sets.
  TypeBuilder(const char* name, size_t size, unsigned int flags = 0)
      : name_(name), size_(size), flags_(Py_TPFLAGS_DEFAULT | flags) {}

  template <class Result, class... Arguments>
  TypeBuilder& Slot(int slot, Result (*function)(Arguments...)) {
    slots_.push_back({slot, reinterpret_cast<void*>(function)});
    return *this;
  }

  TypeBuilder& Doc(const char* text) {
    slots_.push_back({Py_tp_doc, const_cast<char*>(text)});
    return *this;
  }

  // The garbage collector tracks its objects. Without `clear`, another object must break each cycle
  // that they are in.
  TypeBuilder& Collected(traverseproc traverse, inquiry clear = nullptr) {
    flags_ |= Py_TPFLAGS_HAVE_GC;
    Slot(Py_tp_traverse, traverse);
    return clear != nullptr ? Slot(Py_tp_clear, clear) : *this;
  }

  // Calling an object calls the vectorcallfunc at this offset. If it is null, the call goes to
  // `call`.
  TypeBuilder& Callable(size_t offset, ternaryfunc call = PyVectorcall_Call) {
    flags_ |= Py_TPFLAGS_HAVE_VECTORCALL;
    call_offset_ = offset;
    return Slot(Py_tp_call, call);
  }

  TypeBuilder& Method(const char* name, PyCFunction function, int flags = METH_VARARGS,
                      const char* doc = nullptr) {
    methods_.push_back({name, function, flags, doc});
    return *this;
  }

  TypeBuilder& Method(const char* name, PyCFunctionWithKeywords function) {
    const auto untyped = reinterpret_cast<void*>(function);
    return Method(name, reinterpret_cast<PyCFunction>(untyped), METH_VARARGS | METH_KEYWORDS);
  }

  TypeBuilder& Property(const char* name, getter get, const char* doc = nullptr) {
    properties_.push_back({name, get, nullptr, doc, nullptr});
    return *this;
  }

  // A property that is the Python object at this offset.
  TypeBuilder& Member(const char* name, size_t offset) {
    objects_.push_back({name, offset});
    return *this;
  }

  // Make it, and register it in the module under the last part of its name. It lives as long as the
  // process; null with a Python error set.
  PyTypeObject* AddTo(PyObject* module) const;

 private:
  const char* name_;
  size_t size_;
  unsigned int flags_;
  std::vector<PyType_Slot> slots_;
  std::vector<PyMethodDef> methods_;
  std::vector<PyGetSetDef> properties_;
  std::vector<std::pair<const char*, size_t>> objects_;
  size_t call_offset_ = 0;  // 0: its objects are not callable
};

// Free an object that the garbage collector tracks. `release` releases its members.
template <class Release>
void DeallocCollected(PyObject* self, Release&& release) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  release();
  PyObject_GC_Del(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}
