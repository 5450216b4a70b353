// Files that are written whole or not at all, as Python's culaunch._base.outputs does it.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../../text.h"
#include "../../version.h"
#include "files.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

inline bool WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(descriptor, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

// A file beside an output, whose lock shows that its writer is alive. Its name contains the
// output's name: the next writer of that output, here or in Python, removes the file of a killed
// writer.
class FileBeside {
 public:
  explicit FileBeside(const std::string& target) {
    const size_t slash = target.rfind('/');
    const size_t name = slash == std::string::npos ? 0 : slash + 1;
    char stem[32];
    std::snprintf(stem, sizeof stem, ".culaunch-%08" PRIx32 "-",
                  Crc(std::string_view(target).substr(name)));
    for (unsigned number = 0;; ++number) {
      path_ = target.substr(0, name) + stem + detail::ToText(number) + ".tmp";
      constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
      file_ = Descriptor(open(path_.c_str(), kFlags, 0666));
      if (!file_ && errno != EEXIST) return;
      if (!file_) {
        RemoveDead(path_);
      } else if (Claim()) {
        return;
      }
    }
  }
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  ~FileBeside() {
    if (file_ && !placed_) unlink(path_.c_str());
  }

  explicit operator bool() const { return static_cast<bool>(file_); }
  int get() const { return file_.get(); }

  bool Rename(const std::string& target) {
    placed_ = rename(path_.c_str(), target.c_str()) == 0;
    return placed_;
  }

 private:
  // The checksum of zlib, by which Python names these files, too.
  static uint32_t Crc(std::string_view text) {
    uint32_t sum = ~uint32_t{0};
    for (const char c : text) {
      sum ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1u) != 0 ? 0xEDB88320u : 0u);
    }
    return ~sum;
  }

  static bool IsAt(const std::string& path, int descriptor) {
    FileStatus there, opened;
    return lstat(path.c_str(), &there) == 0 && fstat(descriptor, &opened) == 0 &&
           there.st_dev == opened.st_dev && there.st_ino == opened.st_ino;
  }

  // Lock the file that was just created; false if another process removed it as a dead writer's. On
  // a file system without locks, no process removes it.
  bool Claim() const {
    if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
    return IsAt(path_, file_.get());
  }

  static void RemoveDead(const std::string& path) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const Descriptor left(open(path.c_str(), flags));
    FileStatus status;
    if (left && fstat(left.get(), &status) == 0 && status.st_uid == geteuid() &&
        flock(left.get(), LOCK_EX | LOCK_NB) == 0 && IsAt(path, left.get())) {
      unlink(path.c_str());
    }
  }

  std::string path_;
  Descriptor file_;
  bool placed_ = false;
};

inline bool WriteThrough(const std::string& path, std::string_view bytes) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return file && WriteAll(file.get(), bytes);
}

// Write a file; false leaves errno. A regular file keeps its mode, and is refused if it is
// read-only. A link is followed. A FIFO or another special file is written through, like a file
// that can be written but not replaced.
inline bool WriteOutput(const std::string& path, std::string_view bytes) {
  FileStatus status;
  const bool is_there = stat(path.c_str(), &status) == 0;
  // A device such as /dev/stdout: a program that has the file open expects the bytes.
  const bool is_open = path.compare(0, 5, "/dev/") == 0 || path.compare(0, 6, "/proc/") == 0;
  if (is_open || (is_there ? !S_ISREG(status.st_mode) : IsThere(path))) {
    return WriteThrough(path, bytes);
  }
  char* const resolved = is_there ? realpath(path.c_str(), nullptr) : nullptr;
  const std::string target = resolved == nullptr ? path : resolved;
  std::free(resolved);
  // A rename would not ask whether the file itself may be written.
  if (is_there && access(target.c_str(), W_OK) != 0) return false;
  {
    FileBeside beside(target);
    if (beside && !WriteAll(beside.get(), bytes)) return false;
    const bool is_done = beside &&
                         (!is_there || fchmod(beside.get(), status.st_mode & 0777u) == 0) &&
                         beside.Rename(target);
    if (is_done || !is_there) return is_done;
  }
  const bool is_fixed = errno == EACCES || errno == EPERM || errno == EROFS || errno == EBUSY;
  return is_fixed && WriteThrough(target, bytes);
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
