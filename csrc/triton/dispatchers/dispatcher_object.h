// The state of a _core.TritonDispatcher, and its most recent launchers.
#pragma once

#include "python/python.h"
#include "triton/dispatchers/state.h"

namespace triton {

// A launcher made by dispatcher[grid], cached for later calls.
struct GridLauncher {
  PyObject* grid;      // owned
  PyObject* launcher;  // owned
};

struct DispatcherObject {
  PyObject_HEAD State* state;
  static constexpr int kCached = 4;
  GridLauncher cached[kCached];
  int next;          // the one to replace next
  PyObject* served;  // borrowed: the kernel whose calls arrive here directly; null: none
  Py_buffer count;   // of its launches, one uint64; obj is null if nobody counts
};

inline DispatcherObject* DispatcherOf(PyObject* self) {
  return reinterpret_cast<DispatcherObject*>(self);
}
inline State& StateOf(PyObject* self) { return *DispatcherOf(self)->state; }

// Counts how often a dispatcher started or stopped serving a kernel.
extern uint64_t g_served_changes;

}  // namespace triton
