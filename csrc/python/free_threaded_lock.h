// A lock that free-threaded builds of Python alone need.
#pragma once

#include <mutex>

#include "python/python.h"

// For data that is read and changed without running Python code. With the GIL nothing else runs
// meanwhile, so it locks nothing.
class FreeThreadedLock {
#ifdef Py_GIL_DISABLED
 public:
  explicit FreeThreadedLock(std::mutex& mutex) : lock_(mutex) {}

 private:
  std::lock_guard<std::mutex> lock_;
#else
 public:
  explicit FreeThreadedLock(std::mutex&) {}
#endif
};
