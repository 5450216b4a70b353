// The contents of a cache's directory, for Python and for C++, and the eviction of entries.
//
//   <key>.entry                      a compiled image
//   <key>.note                       the contents of a source's headers, and how to check them
//   inline/<name>-<key>/<stem>.so    a library of Python's load_inline,
//   inline/<name>-<key>/<stem>.note  its digest, and what it was built from
//   inline/<name>-<key>/<name>.cpp   its source (or .cu), for messages and debuggers
//   headers/...                      headers of a compiler, unpacked
//   .lock                            one byte for each key
//   .tmp-*                           temporary files of writers, in any of these directories
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../version.h"
#include "../files/trusted.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

inline bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

inline bool IsKey(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// An entry: one file, or several that belong together.
struct CacheEntry {
  std::string folder;  // in `inline`, or empty
  std::vector<std::string> names;
  int64_t size;  // in bytes
  int64_t used;  // in nanoseconds: reading an entry renews the time of its file

  std::string Path() const {
    return folder.empty() ? names[0] : JoinPath(JoinPath("inline", folder), names[0]);
  }
};

class CacheContents {
 public:
  // Publishing never takes this long: an older file was left by a writer that died.
  static constexpr int64_t kStale = int64_t{3600} * 1'000'000'000;

  // stale: temporary files that are older are removed. Only the time distinguishes a writer at work
  // from one that died. After a clock was set back, a file may have a time in the future, and
  // counts as old by the same distance.
  CacheContents(const std::string& path, int64_t stale)
      : directory_(TrustedDirectory::Open(path)), stale_(stale) {
    List();
    std::sort(entries_.begin(), entries_.end(),
              [](const CacheEntry& a, const CacheEntry& b) { return a.used < b.used; });
  }

  // The least recently used first.
  const std::vector<CacheEntry>& entries() const { return entries_; }
  // Of writers that are at work, or died lately.
  int64_t temporary_files() const { return temporary_files_; }
  int64_t temporary_size() const { return temporary_size_; }

  // Evict the least recently used entries until the rest fits; return the size of the rest.
  // Eviction goes a tenth below the limit, to make room for the next calls. The entry that was just
  // published (its path) stays in any case.
  int64_t Evict(int64_t most, const std::string& keep) const {
    int64_t total = temporary_size_;
    for (const CacheEntry& one : entries_) total += one.size;
    if (total <= most) return total;
    const int64_t enough = most - (most / 10 + (most % 10 != 0 ? 1 : 0));
    for (const CacheEntry& one : entries_) {
      if (total <= enough) break;
      if (one.Path() != keep && Remove(one)) total -= one.size;
    }
    return total;
  }

  // Remove all entries; return their number without notes, which only belong to other entries.
  long Clear() const {
    long removed = 0;
    for (const CacheEntry& one : entries_) {
      if (Remove(one) && !EndsWith(one.names[0], ".note")) ++removed;
    }
    return removed;
  }

  // Remove an entry; return whether it was there.
  bool Remove(const CacheEntry& entry) const {
    if (entry.folder.empty()) return directory_.Remove(entry.names[0]);
    try {
      return RemoveLibrary(directory_.Sub("inline"), entry.folder, entry.names);
    } catch (const FileError&) {
      return false;
    }
  }

  // Remove the files of a library, and with the last one of its key the sources and the directory.
  static bool RemoveLibrary(const TrustedDirectory& all, const std::string& folder,
                            const std::vector<std::string>& names) {
    bool removed = false;
    const TrustedDirectory inside = all.Sub(folder);
    // The note first: a library without a note is not found, and does no harm.
    for (size_t i = names.size(); i-- > 0;) removed = inside.Remove(names[i]);
    const Items left = inside.Items();
    const auto is_needed = [](const auto& one) {
      return EndsWith(one.first, ".so") || EndsWith(one.first, ".note");
    };
    if (std::any_of(left.begin(), left.end(), is_needed)) return removed;
    for (const auto& [name, status] : left) {
      if (IsSource(name)) inside.Remove(name);
    }
    all.RemoveDirectory(folder);
    return removed;
  }

 private:
  using Items = std::vector<std::pair<std::string, FileStatus>>;

  void List() {
    Sweep(directory_);
    for (const auto& [name, status] : directory_.Items()) {
      const std::string_view stem = std::string_view(name).substr(0, name.find('.'));
      // Foreign files in the directory are not counted, and never removed.
      if (IsKey(stem) && (name.substr(64) == ".entry" || name.substr(64) == ".note")) {
        entries_.push_back({"", {name}, status.st_size, Nanoseconds(status.st_mtim)});
      }
    }
    try {
      const TrustedDirectory all = directory_.Sub("inline");
      for (const auto& one : all.Items(true)) ListFolder(all, one.first);
    } catch (const FileError&) {
      // They do not exist, or belong to another user.
    }
  }

  void ListFolder(const TrustedDirectory& all, const std::string& folder) {
    try {
      const TrustedDirectory inside = all.Sub(folder);
      // A writer that died before it published its library leaves its directory, too.
      if (Sweep(inside) || HasOnlySources(inside)) RemoveLibrary(all, folder, {});
      ListLibraries(folder, inside.Items());
    } catch (const FileError&) {
    }
  }

  static bool IsSource(const std::string& name) {
    return EndsWith(name, ".cpp") || EndsWith(name, ".cu");
  }

  // Whether the publisher of a library's sources died before it published the library.
  bool HasOnlySources(const TrustedDirectory& folder) const {
    for (const auto& [name, status] : folder.Items()) {
      if (!IsSource(name) || !IsStale(status)) return false;
    }
    return true;
  }

  void ListLibraries(const std::string& folder, Items items) {
    // The sources go with the last library, which is the one that was used last.
    std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
      return Nanoseconds(a.second.st_mtim) > Nanoseconds(b.second.st_mtim);
    });
    int64_t sources = 0;
    for (const auto& [name, status] : items) sources += IsSource(name) ? status.st_size : 0;
    for (const auto& [name, status] : items) {
      if (!EndsWith(name, ".so")) continue;
      const std::string stem = name.substr(0, name.size() - 3);
      CacheEntry stored = {
          folder, {name}, status.st_size + std::exchange(sources, 0), Nanoseconds(status.st_mtim)};
      // Older versions gave their record the other name. It is removed with the library.
      for (const auto& [other, other_status] : items) {
        if (other != stem + ".note" && other != stem + ".json") continue;
        stored.names.push_back(other);
        stored.size += other_status.st_size;
      }
      entries_.push_back(std::move(stored));
    }
  }

  // Files of dead writers go first, because they are useless. Files of live writers also count.
  bool Sweep(const TrustedDirectory& directory) {
    bool removed = false;
    for (const auto& [name, status] : directory.Items()) {
      if (name.compare(0, 5, ".tmp-") != 0) continue;
      if (IsStale(status) && directory.Remove(name)) {
        removed = true;
      } else {
        ++temporary_files_;
        temporary_size_ += status.st_size;
      }
    }
    return removed;
  }

  bool IsStale(const FileStatus& status) const {
    return std::abs(NowNanoseconds() - Nanoseconds(status.st_mtim)) >= stale_;
  }

  TrustedDirectory directory_;
  int64_t stale_;
  std::vector<CacheEntry> entries_;
  int64_t temporary_files_ = 0;
  int64_t temporary_size_ = 0;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
