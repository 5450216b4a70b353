// The state of a _core.Kernel: its parameter slots, and its most recent launchers.
#pragma once

#include <culaunch/kernel.h>

#include <atomic>
#include <cstdint>

#include "arguments/convert.h"
#include "python/python.h"

// A launcher made by kernel[grid, block], kept for the next time.
struct CachedLauncher {
  static constexpr Py_ssize_t kItems = 3;
  PyObject* items[kItems];  // of its key: the same objects are found without reading them
  Py_ssize_t size;          // of its key
  PyObject* launcher;       // owned
  PyObject* key;            // owned
  uint32_t numbers[7];
};

struct KernelObject {
  PyObject_HEAD PyObject* module;  // the _core.Module, which owns `state`
  culaunch::KernelState* state;
  ParameterSlot* slots;  // as many as state->parameters()
  size_t count;
  size_t bytes;  // of the parameter block
  static constexpr int kCached = 8;
  int cached;  // how many launchers are cached
  int next;    // the one to replace next
  CachedLauncher cache[kCached];
  std::atomic<bool> is_configured;  // it has had a launcher, for `culaunch bundle`
};

inline KernelObject* KernelOf(PyObject* self) { return reinterpret_cast<KernelObject*>(self); }
