// culaunch::Mutex: the system's own. <mutex> includes <chrono>, which takes a tenth of the whole
// header's compile time.
#pragma once

#include "version.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#endif

CULAUNCH_NAMESPACE_BEGIN

// It needs no destruction. A static one serves threads that run on at exit, and leaves nothing
// behind at dlclose.
class Mutex {
 public:
  Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

#if defined(_WIN32)
  void lock() noexcept { AcquireSRWLockExclusive(&own_); }
  void unlock() noexcept { ReleaseSRWLockExclusive(&own_); }

 private:
  SRWLOCK own_ = SRWLOCK_INIT;
#else
  void lock() noexcept { pthread_mutex_lock(&own_); }
  void unlock() noexcept { pthread_mutex_unlock(&own_); }

 private:
  pthread_mutex_t own_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

class LockGuard {
 public:
  explicit LockGuard(Mutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  ~LockGuard() { mutex_.unlock(); }

 private:
  Mutex& mutex_;
};

CULAUNCH_NAMESPACE_END
