// What a cache's directory holds, and what is removed where it is too full. All kinds of entries
// count, those of Python's load_inline too: docs/cache.md says what they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../version.h"
#include "trusted.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

inline bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

inline bool IsKey(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class Eviction {
 public:
  explicit Eviction(const TrustedDirectory& directory) : directory_(directory) {}

  // Evict the least recently used entries until the rest fits; return the size of the rest.
  // Eviction goes a tenth below the limit, to make room for the next calls. The entry that was just
  // published stays in any case.
  int64_t Run(int64_t most, const std::string& keep) {
    List();
    if (total_ <= most) return total_;
    std::sort(entries_.begin(), entries_.end(),
              [](const Stored& a, const Stored& b) { return a.used < b.used; });
    for (const Stored& one : entries_) {
      if (total_ <= most / 10 * 9) break;
      if ((one.folder.empty() && one.names[0] == keep) || !Remove(one)) continue;
      total_ -= one.size;
    }
    return total_;
  }

 private:
  // An entry: one file, or several that belong together.
  struct Stored {
    std::string folder;  // in `inline`, or empty
    std::vector<std::string> names;
    int64_t size;
    int64_t used;
  };
  using Items = std::vector<std::pair<std::string, FileStatus>>;

  void List() {
    Sweep(directory_);
    for (const auto& [name, status] : directory_.Items()) {
      const std::string_view stem = std::string_view(name).substr(0, name.find('.'));
      if (IsKey(stem) && (EndsWith(name, ".entry") || EndsWith(name, ".note"))) {
        Count({"", {name}, status.st_size, Nanoseconds(status.st_mtim)});
      }
    }
    try {
      const TrustedDirectory all = directory_.Sub("inline");
      for (const auto& [folder, ignored] : all.Items(true)) {
        const TrustedDirectory inside = all.Sub(folder);
        if (Sweep(inside) || HasOnlySources(inside)) RemoveIfBare(all, folder);
        ListLibraries(folder, inside.Items());
      }
    } catch (const FileError&) {
      // There are none, or they are not ours.
    }
  }

  static bool IsSource(const std::string& name) {
    return EndsWith(name, ".cpp") || EndsWith(name, ".cu");
  }

  // Whether the publisher of a library's sources died before it published the library.
  static bool HasOnlySources(const TrustedDirectory& folder) {
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
      Stored stored = {
          folder, {name}, status.st_size + std::exchange(sources, 0), Nanoseconds(status.st_mtim)};
      for (const auto& [other, other_status] : items) {
        if (other != stem + ".note" && other != stem + ".json") continue;
        stored.names.push_back(other);
        stored.size += other_status.st_size;
      }
      Count(std::move(stored));
    }
  }

  void Count(Stored stored) {
    total_ += stored.size;
    entries_.push_back(std::move(stored));
  }

  // Files of dead writers go first: nobody needs them. Files of live writers count, too.
  bool Sweep(const TrustedDirectory& directory) {
    bool removed = false;
    for (const auto& [name, status] : directory.Items()) {
      if (name.compare(0, 5, ".tmp-") != 0) continue;
      if (IsStale(status) && directory.Remove(name)) {
        removed = true;
      } else {
        total_ += status.st_size;
      }
    }
    return removed;
  }

  static bool IsStale(const FileStatus& status) {
    constexpr int64_t kStale = int64_t{3600} * 1'000'000'000;
    return std::abs(NowNanoseconds() - Nanoseconds(status.st_mtim)) >= kStale;
  }

  bool Remove(const Stored& stored) const {
    if (stored.folder.empty()) return directory_.Remove(stored.names[0]);
    try {
      const TrustedDirectory all = directory_.Sub("inline");
      const TrustedDirectory folder = all.Sub(stored.folder);
      // The note first: a library without one is not found, and does no harm.
      for (size_t i = stored.names.size(); i-- > 1;) folder.Remove(stored.names[i]);
      const bool removed = folder.Remove(stored.names[0]);
      RemoveIfBare(all, stored.folder);
      return removed;
    } catch (const FileError&) {
      return false;
    }
  }

  // Remove the sources in a directory that has no library any more, and then the directory.
  static void RemoveIfBare(const TrustedDirectory& all, const std::string& folder) {
    const TrustedDirectory inside = all.Sub(folder);
    const Items left = inside.Items();
    for (const auto& [name, status] : left) {
      if (EndsWith(name, ".so") || EndsWith(name, ".note")) return;
    }
    for (const auto& [name, status] : left) {
      if (IsSource(name)) inside.Remove(name);
    }
    all.RemoveDirectory(folder);
  }

  const TrustedDirectory& directory_;
  std::vector<Stored> entries_;
  int64_t total_ = 0;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
