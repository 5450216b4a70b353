// Trusted directories for code and images: other users cannot write to them.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../text.h"
#include "../../version.h"
#include "../base/paths.h"
#include "files.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// An operation that the disk refused, or that the rule about a directory's owner forbids.
struct FileError {
  int code;
  std::string why;

  static FileError Last() { return {errno, std::strerror(errno)}; }
};

// The reason why a file with these facts is not private to the user; empty if it is.
inline std::string WhyNotTrusted(const FileStatus& status) {
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    return "it belongs to user " + detail::ToText(status.st_uid) + ", not " +
           detail::ToText(geteuid());
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", status.st_mode & 07777u);
    return std::string("other users may write to it (mode ") + mode + "): run chmod go-w on it";
  }
  return {};
}

// Make a directory and those above that are missing, accessible only to the user, whatever the
// umask is.
inline void MakePrivate(const std::string& path) {
  const std::string above = DirectoryOf(path);
  if (mkdir(path.c_str(), 0700) == 0) return;
  if (errno == ENOENT && !above.empty() && above != path) {
    MakePrivate(above);
    // Once more and not again: /proc says for ever that it is not there.
    if (mkdir(path.c_str(), 0700) == 0) return;
  }
  const FileError error = FileError::Last();
  if (!IsDirectory(path)) {  // a read-only disk refuses existing directories, too
    throw error.code == EEXIST ? FileError{ENOTDIR, "it is not a directory"} : error;
  }
}

// An open directory that only the user and root can change. Each check uses the descriptor of the
// opened file: a directory that is moved away and replaced is noticed.
class TrustedDirectory {
 public:
  // Throws FileError if it does not exist, is not a directory, or is not private to the user.
  static TrustedDirectory Open(const std::string& path, bool make = false) {
    if (make) MakePrivate(path);
    Descriptor opened(open(path.c_str(), kFlags | O_NOFOLLOW));
    if (!opened) {
      const FileError error = FileError::Last();
      FileStatus link;
      if (lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) throw error;
      if (link.st_uid != 0 && link.st_uid != geteuid()) {
        throw FileError{EPERM, "it is a symbolic link that belongs to user " +
                                   detail::ToText(link.st_uid) + ", not " +
                                   detail::ToText(geteuid())};
      }
      opened = Descriptor(open(path.c_str(), kFlags));
    }
    return Checked(std::move(opened));
  }

  // Open a directory in this one, under the same rule; a link is not followed.
  TrustedDirectory Sub(const std::string& name) const {
    return Checked(Descriptor(openat(get(), name.c_str(), kFlags | O_NOFOLLOW)));
  }

  // Read a file whole; false if it does not exist, or if others can change it.
  bool Read(const std::string& name, std::string* contents, FileStatus* status) const {
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const Descriptor opened(openat(get(), name.c_str(), flags));
    return opened && fstat(opened.get(), status) == 0 && S_ISREG(status->st_mode) &&
           WhyNotTrusted(*status).empty() && ReadAll(opened.get(), contents);
  }

  // Put a private file in place, whole or not at all. Throws FileError, and leaves nothing behind
  // then.
  void Publish(const std::string& name, std::string_view data) const {
    // Beside its final place: the rename then stays within one file system. Its name is unique,
    // even for a writer in another container with the same process id.
    const std::string temporary = TemporaryName();
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    Descriptor opened(openat(get(), temporary.c_str(), flags, 0600));
    if (!opened) throw FileError::Last();
    while (!data.empty()) {
      const ssize_t wrote = write(opened.get(), data.data(), data.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) Abandon(temporary);
      data.remove_prefix(static_cast<size_t>(wrote));
    }
    // The contents before the name: after a power failure there would otherwise be a file of the
    // right name with zeros in it.
    if (fsync(opened.get()) != 0) Abandon(temporary);
    opened = Descriptor();
    if (renameat(get(), temporary.c_str(), get(), name.c_str()) != 0) Abandon(temporary);
    // Without it a power failure may take the rename back; the entry is then merely not there.
    fsync(get());
  }

  // The names and facts of the regular files, or of the directories.
  std::vector<std::pair<std::string, FileStatus>> Items(bool directories = false) const {
    std::vector<std::pair<std::string, FileStatus>> found;
    const int copy = openat(get(), ".", kFlags);
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : fdopendir(copy),
                                                      &closedir);
    if (listing == nullptr) return found;
    while (const dirent* const entry = readdir(listing.get())) {
      const std::string name = entry->d_name;
      FileStatus status;
      if (name == "." || name == ".." || !Status(name, &status)) continue;
      if (directories ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode)) {
        found.emplace_back(name, status);
      }
    }
    return found;
  }

  bool Status(const std::string& name, FileStatus* status) const {
    return fstatat(get(), name.c_str(), status, AT_SYMLINK_NOFOLLOW) == 0;
  }

  // Note that a file was used, where that can be noted.
  void Touch(const std::string& name) const {
    utimensat(get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }

  bool Remove(const std::string& name) const { return unlinkat(get(), name.c_str(), 0) == 0; }
  void RemoveDirectory(const std::string& name) const {
    unlinkat(get(), name.c_str(), AT_REMOVEDIR);
  }

 private:
  static constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

  explicit TrustedDirectory(Descriptor opened) : descriptor_(std::move(opened)) {}

  static TrustedDirectory Checked(Descriptor opened) {
    FileStatus status;
    if (!opened || fstat(opened.get(), &status) != 0) throw FileError::Last();
    const std::string why_not = WhyNotTrusted(status);
    if (!why_not.empty()) throw FileError{EPERM, why_not};
    return TrustedDirectory(std::move(opened));
  }

  static std::string TemporaryName() {
    unsigned char random[8];
    if (getentropy(random, sizeof random) != 0) throw FileError::Last();
    std::string name = ".tmp-" + detail::ToText(getpid()) + "-";
    for (const unsigned byte : random) {
      name += "0123456789abcdef"[byte >> 4];
      name += "0123456789abcdef"[byte & 15];
    }
    return name;
  }

  [[noreturn]] void Abandon(const std::string& temporary) const {
    const FileError error = FileError::Last();
    Remove(temporary);
    throw error;
  }

  int get() const { return descriptor_.get(); }

  Descriptor descriptor_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
