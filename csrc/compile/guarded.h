// Python's errors as C++ exceptions, for code that calls culaunch's headers.
#pragma once

#include <new>

#include "python/python.h"

// A Python error is set.
struct Raised {};

inline void Require(bool succeeded) {
  if (!succeeded) throw Raised();
}

inline Ref Required(Ref object) {
  Require(static_cast<bool>(object));
  return object;
}

// Return the result of `make`; null with a Python error set if it throws.
template <class Make>
PyObject* Guarded(const Make& make) {
  try {
    return make().release();
  } catch (const Raised&) {
    return nullptr;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// Runs without the GIL, except for its queries to Python.
class WithoutPython {
 public:
  WithoutPython() : state_(PyEval_SaveThread()) {}
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;
  ~WithoutPython() { PyEval_RestoreThread(state_); }

  template <class Question>
  void Ask(const Question& ask) {
    PyEval_RestoreThread(state_);
    struct Leave {
      WithoutPython* self;
      ~Leave() { self->state_ = PyEval_SaveThread(); }
    } leave{this};
    ask();
  }

 private:
  PyThreadState* state_;
};

// Compute without the GIL.
template <class Compute>
auto Apart(const Compute& compute) {
  const WithoutPython without;
  return compute();
}
