// Python.h, and an owning reference.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <culaunch/version.h>

#include <chrono>
#include <thread>
#include <utility>

// CULAUNCH_APART keeps functions that few calls reach out of the hot path. CULAUNCH_RARE functions
// are also not optimized for speed.
#if defined(__GNUC__)
#define CULAUNCH_APART __attribute__((noinline))
#define CULAUNCH_RARE __attribute__((noinline, cold))
#else
#define CULAUNCH_APART
#define CULAUNCH_RARE
#endif

// PyVectorcall_NARGS, which is a call in the stable ABI.
inline size_t ArgumentCount(size_t nargsf) { return nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET; }

// Owns one reference; null is allowed.
class Ref {
 public:
  Ref() = default;
  // Take over a new reference, as most functions of the C API return.
  explicit Ref(PyObject* object) : object_(object) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  static Ref Borrow(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Suspend this thread until the process ends.
[[noreturn]] inline void WaitForExit() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// For a function that recurses into objects: it limits the depth as Python does.
class Recursion {
 public:
  explicit Recursion(const char* where) : is_too_deep_(Py_EnterRecursiveCall(where) != 0) {}
  Recursion(const Recursion&) = delete;
  Recursion& operator=(const Recursion&) = delete;
  ~Recursion() {
    if (!is_too_deep_) Py_LeaveRecursiveCall();
  }

  // With a Python error set.
  bool is_too_deep() const { return is_too_deep_; }

 private:
  bool is_too_deep_;
};

// Hold the GIL in a thread that may not have it, because other libraries call without it.
class HoldGil {
 public:
  HoldGil() : state_(PyGILState_Ensure()) {}
  HoldGil(const HoldGil&) = delete;
  HoldGil& operator=(const HoldGil&) = delete;
  ~HoldGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// Let other Python threads run during a driver call that may block.
//
// A daemon thread may return after the end of the interpreter has begun. CPython before 3.14 ends
// it there through pthread_exit. C++ answers this unwinding with an abort of the process at the
// first noexcept function. Therefore the thread waits instead, as from 3.14 on.
class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;
  ~ReleaseGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      WaitForExit();
    }
  }

 private:
  PyThreadState* state_;
};

// Run a call of a module with the GIL released. Every call of a module must do this. PTX is
// compiled in them, and waiting for a module's lock with the GIL held would deadlock with a driver
// in Python.
template <class Call>
auto WithoutGil(Call&& call) {
  const ReleaseGil released;
  return call();
}
