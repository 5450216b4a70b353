// One compile at a time for each key, among threads and processes of a machine.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "../../version.h"
#include "files.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// Holds one byte of a file, at an offset computed from the key. It uses the open-file-description
// locks of Linux. They end with the process, work between threads, and need no file for each key.
// Some network mounts do not support them. Then nothing is locked: two processes may compile the
// same key, and both get a correct result.
class KeyLock {
 public:
  // Waits for another holder, but not past the timeout.
  KeyLock(const std::string& path, const std::string& key, std::chrono::duration<double> timeout)
      : offset_(std::strtoll(key.substr(0, 15).c_str(), nullptr, 16)),
        file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (!file_) return;
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::chrono::duration<double> pause(0.002);
    while (!Set(F_WRLCK)) {
      if (errno != EAGAIN && errno != EACCES) return;
      if (std::chrono::steady_clock::now() >= deadline) return;
      std::this_thread::sleep_for(pause);
      if (pause.count() < 0.025) pause *= 1.5;
    }
    held_ = true;
  }
  KeyLock(const KeyLock&) = delete;
  KeyLock& operator=(const KeyLock&) = delete;
  // Not left to close(): a child that was forked meanwhile has the description too.
  ~KeyLock() {
    if (held_) Set(F_UNLCK);
  }

 private:
  bool Set(short kind) {
#if defined(F_OFD_SETLK)
    struct flock lock = {};
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(offset_);
    lock.l_len = 1;
    return fcntl(file_.get(), F_OFD_SETLK, &lock) == 0;
#else
    errno = kind == F_WRLCK ? ENOSYS : 0;
    return false;
#endif
  }

  long long offset_;
  Descriptor file_;
  bool held_ = false;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
