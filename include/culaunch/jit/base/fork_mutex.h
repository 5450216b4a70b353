// A mutex that is free in a forked process if another thread held it.
#pragma once

#include <unistd.h>

#include <atomic>
#include <mutex>

#include "../../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// A forked process has only the thread that forked. A mutex that another thread held would stay
// locked, and the next thread that locks it would wait forever. So each process has its own.
class ForkMutex {
 public:
  ForkMutex() = default;
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;
  ~ForkMutex() { delete own_.load(); }

  std::unique_lock<std::mutex> Lock() {
    Own* own = own_.load();
    if (own == nullptr || own->process != getpid()) {
      // The parent's is not destroyed: it may be locked.
      Own* const fresh = new Own;
      if (own_.compare_exchange_strong(own, fresh)) {
        own = fresh;
      } else {
        delete fresh;
      }
    }
    return std::unique_lock<std::mutex>(own->mutex);
  }

 private:
  struct Own {
    const pid_t process = getpid();
    std::mutex mutex;
  };

  std::atomic<Own*> own_{nullptr};
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
