// A lock that only free-threaded builds of Python need.
#pragma once

#include <mutex>

#include "python/python.h"

// For data that is read and changed without running Python code. The GIL already protects such
// data, so the lock is then empty.
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
