// What a _core.TritonDispatcher holds: its state, and the launchers made of it last.
#pragma once

#include "python/python.h"
#include "triton/state.h"

namespace triton {

// A launcher made by dispatcher[grid], kept for the next time.
struct GridLauncher {
  PyObject* grid;      // owned
  PyObject* launcher;  // owned
};

struct DispatcherObject {
  PyObject_HEAD State* state;
  static constexpr int kCached = 4;
  GridLauncher cached[kCached];
  int next;          // which one is replaced next
  PyObject* served;  // borrowed: the kernel whose calls come here by themselves; null: none
  Py_buffer count;   // of its launches, one uint64; obj is null where nobody counts
};

inline DispatcherObject* DispatcherOf(PyObject* self) {
  return reinterpret_cast<DispatcherObject*>(self);
}
inline State& StateOf(PyObject* self) { return *DispatcherOf(self)->state; }

// Counts how often a dispatcher began or ceased to serve a kernel.
extern uint64_t g_served_changes;

}  // namespace triton
