// The places of CUDA's parts: the process, pip's packages, the loader's path, a toolkit.
#pragma once

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../error.h"
#include "../../text.h"
#include "../../version.h"
#include "../base/fork_mutex.h"
#include "../base/paths.h"
#include "../files/footprint.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

constexpr const char* kUsualHome = "/usr/local/cuda";

inline std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &std::free);
  return real != nullptr ? real.get() : path;
}

inline std::string EnvironmentVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

inline std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(directory.c_str()), &closedir);
  while (const dirent* const entry = listing ? readdir(listing.get()) : nullptr) {
    names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The toolkits that the environment names.
inline std::vector<std::string> ChosenHomes() {
  std::vector<std::string> homes;
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string home = EnvironmentVariable(name);
    if (!home.empty()) homes.push_back(home);
  }
  return homes;
}

// The folders of NVIDIA's pip packages that the code around has chosen, which are searched before
// all other places. Python knows its own environment.
class ChosenPipFolders {
 public:
  static void Set(std::vector<std::string> folders) {
    const auto lock = Mutex().Lock();
    Place() = std::move(folders);
  }
  // None if nothing was chosen. A copy: other threads may choose meanwhile.
  static std::optional<std::vector<std::string>> Get() {
    const auto lock = Mutex().Lock();
    return Place();
  }

 private:
  static ForkMutex& Mutex() {
    static auto* const mutex = new ForkMutex;
    return *mutex;
  }
  static std::optional<std::vector<std::string>>& Place() {
    static auto* const chosen = new std::optional<std::vector<std::string>>;
    return *chosen;
  }
};

// The folders of NVIDIA's pip packages in the environments that this process may belong to. These
// are the environment of this code, the active one, conda's, and the one of the python3 in PATH.
inline std::vector<std::string> PipFolders() {
  if (auto chosen = ChosenPipFolders::Get()) return *std::move(chosen);
  std::vector<std::string> found;
  const auto add = [&](const std::string& site) {
    const std::string folder = JoinPath(site, "nvidia");
    const bool is_known = std::find(found.begin(), found.end(), folder) != found.end();
    if (!is_known && IsDirectory(folder)) found.push_back(folder);
  };
  static const char here = 0;
  Dl_info info;
  if (dladdr(&here, &info) != 0 && info.dli_fname != nullptr) {
    for (std::string at = RealPath(info.dli_fname); at.size() > 1; at = DirectoryOf(at)) {
      const std::string name = BaseName(at);
      if (name == "site-packages" || name == "dist-packages") add(at);
    }
  }
  std::vector<std::string> prefixes = {EnvironmentVariable("VIRTUAL_ENV"),
                                       EnvironmentVariable("CONDA_PREFIX")};
  const std::string path = EnvironmentVariable("PATH");
  for (size_t start = 0; start < path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    const std::string directory = path.substr(start, end - start);
    start = end + 1;
    if (!IsAbsolute(directory) || !IsFile(JoinPath(directory, "python3"))) continue;
    prefixes.push_back(DirectoryOf(directory));
    break;
  }
  for (const std::string& prefix : prefixes) {
    if (prefix.empty()) continue;
    const std::string lib = JoinPath(prefix, "lib");
    for (const std::string& name : NamesIn(lib)) {
      if (name.compare(0, 7, "python3") == 0) add(JoinPath(JoinPath(lib, name), "site-packages"));
    }
  }
  return found;
}

// A library of CUDA, by the names that its major versions have.
struct CudaLibrary {
  const char* title;                 // for messages
  std::vector<std::string> names;    // "libnvrtc.so.13", the newest first
  std::vector<std::string> folders;  // of pip's packages: "cu13/lib"
  const char* package;               // what to install
  const char* marker;                // one of its functions
};

inline CudaLibrary NvrtcLibrary() {
  return {"NVRTC",
          {"libnvrtc.so.13", "libnvrtc.so.12"},
          {"cu13/lib", "cuda_nvrtc/lib"},
          "nvidia-cuda-nvrtc",
          "nvrtcVersion"};
}

inline CudaLibrary NvFatbinLibrary() {
  return {"nvFatbin",
          {"libnvfatbin.so.13", "libnvfatbin.so.12"},
          {"cu13/lib", "nvfatbin/lib"},
          "nvidia-nvfatbin",
          "nvFatbinVersion"};
}

inline CudaLibrary NvJitLinkLibrary() {
  return {"nvJitLink",
          {"libnvJitLink.so.13", "libnvJitLink.so.12"},
          {"cu13/lib", "nvjitlink/lib"},
          "nvidia-nvjitlink",
          "nvJitLinkVersion"};
}

// A shared library of CUDA that is or will be loaded, and stays for the life of the process.
class SharedCudaLibrary {
 public:
  SharedCudaLibrary() = default;

  // given: its path, a directory that contains it, or empty.
  SharedCudaLibrary(CudaLibrary library, const std::string& given,
                    const std::vector<std::string>& first_folders = {})
      : library_(std::move(library)) {
    if (!given.empty()) {
      path_ = IsDirectory(given) ? InFolder(given) : given;
      if (path_.empty() || !IsFile(path_)) {
        throw Error(std::string(library_.title) + " is not at " + given + ": give the path of " +
                    library_.names[0] + " or of its directory");
      }
      path_ = RealPath(path_);
      return;
    }
    for (const std::string& folder : first_folders) {
      if (TakeFrom(folder)) return;
    }
    if (ChosenPipFolders::Get() && TakeFromPip()) return;
    // A second copy beside one that is already loaded would be another compiler.
    if (Open(RTLD_NOLOAD) || TakeFromPip()) return;
    if (Open(0)) return;
    std::vector<std::string> homes = ChosenHomes();
    homes.emplace_back(kUsualHome);
    for (const std::string& home : homes) {
      for (const char* const folder : {"lib64", "lib", "targets/x86_64-linux/lib",
                                       "targets/sbsa-linux/lib", "extras/CUPTI/lib64"}) {
        if (TakeFrom(JoinPath(home, folder))) return;
      }
    }
    throw Missing(
        "it is not in this process, in pip's packages (" + detail::ToText(PipFolders().size()) +
        " environments looked at), on the loader's path, nor in CUDA_HOME or " + kUsualHome);
  }

  // Where it is, links followed.
  const std::string& path() const noexcept { return path_; }

  // One of its functions; null if it has none of that name.
  template <class Function>
  Function* Find(const char* name) {
    Load();
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

  template <class Function>
  Function* Require(const char* name) {
    Function* const found = Find<Function>(name);
    if (found == nullptr) {
      throw Missing(path_ + " has no function " + name + ": it is older than CUDA 12");
    }
    return found;
  }

 private:
  Error Missing(const std::string& why) const {
    return Error(ErrorKind::kCall, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
                 "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
                 std::string(library_.title) + " cannot be loaded: " + why + ". Install it (pip " +
                     "install " + library_.package + ", or a CUDA toolkit), or give its path");
  }

  std::string InFolder(const std::string& folder) const {
    for (const std::string& name : library_.names) {
      const std::string path = JoinPath(folder, name);
      if (IsFile(path)) return path;
    }
    return {};
  }

  bool TakeFrom(const std::string& folder) {
    const std::string found = InFolder(folder);
    if (!found.empty()) path_ = RealPath(found);
    return !found.empty();
  }

  bool TakeFromPip() {
    for (const std::string& root : PipFolders()) {
      for (const std::string& folder : library_.folders) {
        if (TakeFrom(JoinPath(root, folder))) return true;
      }
    }
    return false;
  }

  bool Open(int flags) {
    for (const std::string& name : library_.names) {
      handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
      if (handle_ == nullptr) continue;
      // One of its own functions tells where it was loaded from.
      Dl_info info;
      void* const function = dlsym(handle_, library_.marker);
      if (function == nullptr || dladdr(function, &info) == 0) continue;
      path_ = RealPath(info.dli_fname);
      return true;
    }
    return false;
  }

  void Load() {
    if (handle_ != nullptr) return;
    handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
      const char* const why = dlerror();
      throw Missing(why != nullptr ? why : path_);
    }
  }

  CudaLibrary library_;
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
