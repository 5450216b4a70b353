// What a _core.Kernel holds: its parameter slots, and the launchers made of it last.
#pragma once

#include <culaunch/kernel.h>

#include <atomic>
#include <cstdint>

#include "arguments/convert.h"
#include "python/python.h"

// A launcher made by kernel[grid, block], kept for the next time.
struct CachedLauncher {
  PyObject* key;  // owned: the same tuple again is found without reading it
  uint32_t numbers[7];
  PyObject* launcher;  // owned
};

struct KernelObject {
  PyObject_HEAD PyObject* module;  // the _core.Module, which owns `state`
  culaunch::KernelState* state;
  ParameterSlot* slots;  // as many as state->parameters()
  size_t count;
  size_t bytes;  // of the parameter block
  static constexpr int kCached = 8;
  CachedLauncher cache[kCached];
  int cached;                       // how many of them are filled
  int next;                         // which one is replaced next
  std::atomic<bool> is_configured;  // a launcher was made of it: for `culaunch bundle`
};
