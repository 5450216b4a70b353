// Files as a scan sees them: each is read once, for as long as it stays the same file.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../../version.h"
#include "../base/sha256.h"
#include "../source/characters.h"
#include "../source/phases.h"
#include "../source/scan.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

using FileStatus = struct stat;

// The identity of a file, which distinguishes it from later files with the same path. Times are in
// nanoseconds.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t modified = 0;
  int64_t changed = 0;

  bool operator==(const FileIdentity& other) const {
    return std::tie(device, inode, size, modified, changed) ==
           std::tie(other.device, other.inode, other.size, other.modified, other.changed);
  }
  bool operator!=(const FileIdentity& other) const { return !(*this == other); }
};

inline bool IsFile(const std::string& path) {
  FileStatus status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

inline bool IsDirectory(const std::string& path) {
  FileStatus status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

inline bool IsThere(const std::string& path) {
  FileStatus status;
  return lstat(path.c_str(), &status) == 0;
}

inline int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_nsec};
}

inline FileIdentity IdentityOf(const FileStatus& status) {
  return {uint64_t{status.st_dev}, uint64_t{status.st_ino}, int64_t{status.st_size},
          Nanoseconds(status.st_mtim), Nanoseconds(status.st_ctim)};
}

inline int64_t NowNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds(now);
}

// Whether the last change is so long ago that the next one will have other times.
inline bool IsOld(const FileIdentity& identity, int64_t now) {
  constexpr int64_t kSettled = 2'000'000'000;
  const int64_t last = identity.modified > identity.changed ? identity.modified : identity.changed;
  return now - last > kSettled;
}

// The identity, or none if the file may change and keep it. That is the case shortly after a
// change, and if the file system has no fractions of a second in its change times. Another file
// with the same identity may then replace it.
inline std::optional<FileIdentity> SettledIdentity(const FileStatus& status, int64_t now) {
  const FileIdentity identity = IdentityOf(status);
  if (!IsOld(identity, now) || status.st_ctim.tv_nsec == 0) return std::nullopt;
  return identity;
}

// Words that expand to the path of their file. Some can be the default of a function's argument,
// and then stand for the caller's file.
inline const std::vector<std::string>& PlaceWords() {
  static const std::vector<std::string>* const words =
      new std::vector<std::string>{"__FILE__",
                                   "__BASE_FILE__",
                                   "__FILE_NAME__",
                                   "__builtin_FILE",
                                   "__builtin_FILE_NAME",
                                   "__builtin_source_location",
                                   "source_location",
                                   "assert"};
  return *words;
}

inline bool IsCallerWord(std::string_view word) {
  return word == "__builtin_FILE" || word == "__builtin_FILE_NAME" ||
         word == "__builtin_source_location" || word == "source_location";
}

// The contents of a file.
struct SourceFile {
  explicit SourceFile(std::string contents)
      : text(std::move(contents)),
        digest(HexDigest(text)),
        scan(ScanText(text)),
        names_caller(AnyWord(text, IsCallerWord)) {}

  std::string text;
  std::string digest;
  Scan scan;
  bool names_caller;  // whether a function in it could have the place of its
                      // caller
};
using SharedFile = std::shared_ptr<const SourceFile>;

// Closes a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int descriptor = -1) noexcept : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  int get() const noexcept { return descriptor_; }
  explicit operator bool() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

// Read an open file to its end; false with errno if that fails.
inline bool ReadAll(int descriptor, std::string* contents) {
  FileStatus status;
  if (fstat(descriptor, &status) != 0) return false;
  contents->clear();
  size_t filled = 0;
  for (;;) {
    // One more than its size: one call then reads a file that did not grow, and another call finds
    // its end.
    const size_t room = filled < static_cast<size_t>(status.st_size)
                            ? static_cast<size_t>(status.st_size) - filled + 1
                            : 65536;
    contents->resize(filled + room);
    const ssize_t got = read(descriptor, &(*contents)[filled], room);
    if (got < 0 && errno == EINTR) continue;
    contents->resize(filled + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got <= 0) return got == 0;
    filled += static_cast<size_t>(got);
  }
}

// The files that this process has read: path to identity and contents.
class KnownFiles {
 public:
  static KnownFiles& Get() {
    static KnownFiles* const known = new KnownFiles;
    return *known;
  }

  SharedFile Find(const std::string& path, const std::optional<FileIdentity>& settled) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = files_.find(path);
    if (!settled || found == files_.end() || found->second.first != *settled) return nullptr;
    return found->second.second;
  }

  void Keep(const std::string& path, const FileIdentity& settled, SharedFile file) {
    constexpr size_t kMostBytes = 64u << 20;
    const std::lock_guard<std::mutex> lock(mutex_);
    size_ += file->text.size();
    if (size_ > kMostBytes) {
      files_.clear();
      size_ = file->text.size();
    }
    files_[path] = {settled, std::move(file)};
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::pair<FileIdentity, SharedFile>> files_;
  size_t size_ = 0;
};

// A file that was read: its contents, and its identity if that is settled.
struct ReadResult {
  SharedFile file;
  FileStatus status;
  std::optional<FileIdentity> settled;
};

// Read a regular file; none if it is not one, or cannot be read.
inline std::optional<ReadResult> ReadSource(const std::string& path) {
  const int64_t now = NowNanoseconds();
  ReadResult result;
  if (stat(path.c_str(), &result.status) != 0 || !S_ISREG(result.status.st_mode)) {
    return std::nullopt;
  }
  result.settled = SettledIdentity(result.status, now);
  result.file = KnownFiles::Get().Find(path, result.settled);
  if (result.file != nullptr) return result;
  const Descriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  FileStatus before;
  std::string contents;
  if (!opened || fstat(opened.get(), &before) != 0 || !ReadAll(opened.get(), &contents) ||
      fstat(opened.get(), &result.status) != 0) {
    return std::nullopt;
  }
  result.file = SharedFile(new SourceFile(std::move(contents)));
  const FileIdentity after = IdentityOf(result.status);
  if (!result.settled || IdentityOf(before) != after || after != *result.settled) {
    result.settled.reset();
  } else {
    KnownFiles::Get().Keep(path, *result.settled, result.file);
  }
  return result;
}

inline std::string CurrentDirectory() {
  char* const path = getcwd(nullptr, 0);
  const std::string working = path != nullptr ? path : "/";
  std::free(path);
  return working;
}

// The SHA-256 of a file's contents; empty if it cannot be read.
inline std::string FileDigest(const std::string& path) {
  const Descriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string contents;
  if (!opened || !ReadAll(opened.get(), &contents)) return {};
  return HexDigest(contents);
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
