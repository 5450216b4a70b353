// Precompiled headers for NVRTC. NVRTC's own handling has three problems. Its heap is too small for
// CUB, and then nothing is written. Two writers at once can crash it. And it uses a precompiled
// header even if an in-memory header has changed. Therefore culaunch enlarges the heap and compiles
// in one thread at a time. Each process has its own directory, with a folder for each set of header
// contents.
#pragma once

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../../error.h"
#include "../../text.h"
#include "../../version.h"
#include "../base/fork_mutex.h"
#include "../base/paths.h"
#include "../base/sha256.h"
#include "../files/files.h"
#include "../files/footprint.h"
#include "cuda_places.h"
#include "nvrtc_api.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

class PrecompiledHeaders {
 public:
  static PrecompiledHeaders& Get() {
    static PrecompiledHeaders* const headers = new PrecompiledHeaders;
    return *headers;
  }

  // Held while one program is compiled.
  std::unique_lock<std::mutex> Lock() { return mutex_.Lock(); }

  // The options for one compile; identity: all that a precompiled header depends on. Locked.
  // Without room there are none, and warn is told once for a place.
  std::vector<std::string> Flags(const NvrtcApi& api, const std::vector<std::string>& identity,
                                 const std::function<void(const std::string&)>& warn) {
    if (api.GetPchHeapSize == nullptr || api.SetPchHeapSize == nullptr) {
      throw Error("pch needs NVRTC 12.8 or later");
    }
    const auto say = [&](const std::string& place, const std::string& why) {
      if (!said_.insert(place).second || !warn) return;
      warn("pch has no room for precompiled headers, so headers are compiled each time: " + why +
           " (set TMPDIR to use another directory)");
    };
    // CUB's block algorithms need 301 MiB; the memory is only taken as it is used.
    constexpr size_t kHeap = size_t{512} << 20;
    size_t heap = 0;
    if (api.GetPchHeapSize(&heap) == kNvrtcSuccess && heap < kHeap) api.SetPchHeapSize(kHeap);
    heap = std::max(heap, kHeap);
    const std::string chosen = EnvironmentVariable("TMPDIR");
    const std::string place = chosen.empty() ? "/tmp" : chosen;  // NVRTC's choice
    const size_t left = RoomIn(place);
    if (left < heap) {
      say(place, place + " has " + detail::ToText(left >> 20) + " MiB left, and NVRTC may take " +
                     detail::ToText(heap >> 20) + " MiB there");
      return {};
    }
    std::string facts;
    for (const std::string& one : identity) facts.append(facts.empty() ? "" : "\n").append(one);
    const std::string directory = DirectoryFor(HexDigest(facts).substr(0, 32));
    if (directory.empty()) {
      say(Base(), Base() + ": " + std::strerror(errno));
      return {};
    }
    return {"--pch", "--pch-dir=" + directory};
  }

  // A folder that is removed when the process ends, if the cache has no space; empty if there is
  // none.
  static std::string SpareFolder() {
    static std::mutex* const mutex = new std::mutex;
    static auto* const made = new std::pair<pid_t, std::string>(0, {});
    const std::lock_guard<std::mutex> lock(*mutex);
    if (made->first == getpid()) return made->second;
    std::string pattern = JoinPath(Base(), std::string(kPrefix) + "XXXXXX");
    if (mkdtemp(&pattern[0]) == nullptr) return {};
    *made = {getpid(), pattern};
    static auto* const held = new std::vector<Descriptor>;
    held->push_back(Hold(pattern));
    std::atexit([] {
      if (made->first == getpid()) RemoveTree(made->second);
    });
    return pattern;
  }

  // Remove, once in a process, the files of killed processes, which may take much memory.
  static void RemoveDeadOnce() {
    static std::atomic<pid_t> swept{0};
    if (swept.exchange(getpid()) != getpid()) RemoveDead(Base());
  }

  // Make room for the next time, after a compile that found the heap too small. Locked.
  static void RaiseHeap(const NvrtcApi& api, NvrtcProgram program) {
    constexpr int kExhausted = 14;  // NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED
    size_t needed = 0;
    if (api.GetPchCreateStatus == nullptr || api.GetPchHeapSizeRequired == nullptr) return;
    if (api.GetPchCreateStatus(program) != kExhausted) return;
    if (api.GetPchHeapSizeRequired(program, &needed) == kNvrtcSuccess) {
      api.SetPchHeapSize(needed + needed / 4);
    }
  }

 private:
  static constexpr const char* kPrefix = "culaunch-pch-";

  // The space for NVRTC's heap, which is a file that is mapped as memory. If it outgrows the disk,
  // SIGBUS ends the process. Space is allocated on use, so the written part shows how much the heap
  // already has. Without space, headers are compiled each time.
  size_t RoomIn(const std::string& place) const {
    struct statvfs space;
    if (statvfs(place.c_str(), &space) != 0) return std::numeric_limits<size_t>::max();
    size_t written = 0;
    for (const std::string& directory : owner_ == getpid() ? used_ : std::vector<std::string>()) {
      for (const std::string& name : NamesIn(directory)) {
        FileStatus status;
        if (lstat(JoinPath(directory, name).c_str(), &status) != 0) continue;
        if (S_ISREG(status.st_mode)) written = std::max(written, size_t(status.st_size));
      }
    }
    return space.f_bavail * space.f_frsize + written;
  }

  // Empty if there is none.
  std::string DirectoryFor(const std::string& name) {
    constexpr size_t kMostSets = 4;
    const std::string above = ProcessDirectory();
    if (above.empty()) return {};
    const std::string directory = JoinPath(above, name);
    used_.erase(std::remove(used_.begin(), used_.end(), directory), used_.end());
    used_.push_back(directory);
    while (used_.size() > kMostSets) {
      RemoveTree(used_.front());
      used_.erase(used_.begin());
    }
    if (mkdir(directory.c_str(), 0700) != 0 && !IsDirectory(directory)) return {};
    return directory;
  }

  // This process's: a precompiled header holds addresses of the process.
  const std::string& ProcessDirectory() {
    if (!directory_.empty() && owner_ == getpid()) return directory_;
    used_.clear();
    std::string pattern = JoinPath(Base(), std::string(kPrefix) + "XXXXXX");
    directory_ = mkdtemp(&pattern[0]) == nullptr ? std::string() : pattern;
    if (directory_.empty()) return directory_;
    owner_ = getpid();
    // Locked as long as the process lives, to show that the directory's owner is alive.
    lock_ = Hold(directory_);
    std::atexit([] {
      PrecompiledHeaders& self = Get();
      // A forked child runs the parent's handlers too; the directory is the parent's.
      if (self.owner_ == getpid()) RemoveTree(self.directory_);
    });
    return directory_;
  }

  // In memory if there is plenty, as they are mapped in every time.
  static std::string Base() {
    constexpr unsigned long kPlenty = 4ul << 30;
    const std::string chosen = EnvironmentVariable("TMPDIR");
    if (!chosen.empty()) return chosen;
    struct statvfs space;
    if (statvfs("/dev/shm", &space) == 0 && access("/dev/shm", W_OK) == 0 &&
        space.f_bavail * space.f_frsize > kPlenty) {
      return "/dev/shm";
    }
    return "/tmp";
  }

  static Descriptor Hold(const std::string& directory) {
    Descriptor opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened && flock(opened.get(), LOCK_EX | LOCK_NB) != 0) opened = Descriptor();
    return opened;
  }

  // Whether a process made it, here or in Python, which makes up eight letters: a user's own
  // directory may begin in the same way.
  static bool IsMadeUp(const std::string& name) {
    const size_t start = std::strlen(kPrefix);
    if (name.compare(0, start, kPrefix) != 0) return false;
    const size_t count = name.size() - start;
    return count >= 6 && count <= 8 &&
           std::all_of(name.begin() + static_cast<std::ptrdiff_t>(start), name.end(),
                       [](unsigned char one) { return std::isalnum(one) != 0 || one == '_'; });
  }

  // Remove files of killed processes, whose locks are free.
  static void RemoveDead(const std::string& base) {
    for (const std::string& name : NamesIn(base)) {
      const std::string path = JoinPath(base, name);
      FileStatus status;
      if (!IsMadeUp(name) || lstat(path.c_str(), &status) != 0) continue;
      if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid()) continue;
      if (const Descriptor held = Hold(path)) RemoveTree(path);
    }
  }

  static void RemoveTree(const std::string& path) {
    for (const std::string& name : NamesIn(path)) {
      if (name == "." || name == "..") continue;
      const std::string inside = JoinPath(path, name);
      FileStatus status;
      const bool is_folder = lstat(inside.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
      if (is_folder) RemoveTree(inside);
      if (!is_folder) unlink(inside.c_str());
    }
    rmdir(path.c_str());
  }

  ForkMutex mutex_;
  std::string directory_;
  pid_t owner_ = 0;
  Descriptor lock_;
  std::vector<std::string> used_;
  std::set<std::string> said_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
