// CUDA's own headers that belong to one NVRTC: never a mismatched pair.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "../../text.h"
#include "../../version.h"
#include "../base/paths.h"
#include "../files/files.h"
#include "../files/footprint.h"
#include "cuda_places.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// The CUDA version of a header directory, "13.5"; empty if it has none.
inline std::string HeaderVersion(const std::string& directory) {
  for (const char* const name : {"cuda_runtime_api.h", "cuda.h"}) {
    const Descriptor opened(open(JoinPath(directory, name).c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    if (!opened || !ReadAll(opened.get(), &text)) continue;
    for (const char* const macro : {"CUDART_VERSION", "CUDA_VERSION"}) {
      const std::string define = "#define " + std::string(macro);
      for (size_t at = 0; (at = text.find(define, at)) != std::string::npos;) {
        at += define.size();
        const int number = std::atoi(text.c_str() + at);
        if (number >= 1000) {
          return detail::ToText(number / 1000) + "." + detail::ToText(number % 1000 / 10);
        }
      }
    }
  }
  return {};
}

struct ToolkitHeaders {
  std::vector<std::string> dirs;   // in search order
  std::vector<std::string> notes;  // which directories were rejected, and why

  // The path of a header; empty if there is none.
  std::string Find(const std::string& name) const {
    for (const std::string& directory : dirs) {
      const std::string path = JoinPath(directory, name);
      if (IsFile(path)) return path;
    }
    return {};
  }

  bool IsWhole() const {
    return !Find("cuda_fp16.h").empty() && !Find("crt/mma.h").empty() && !Find("nv/target").empty();
  }
};

// Find the headers that belong to an NVRTC. The candidates are the directory beside the library (in
// pip's packages as in a toolkit), the directories from the environment, and the usual places. Each
// counts only if it has the same version. Missing headers come from NVRTC 13.3 and newer, which
// contain their own headers.
//
// install_bundled: unpacks those headers; returns their directory, or the reason of a failure.
inline ToolkitHeaders FindToolkitHeaders(
    const std::string& version, const std::string& library,
    const std::function<std::string(std::string* why)>& install_bundled) {
  const std::string lib = DirectoryOf(library);
  std::vector<std::string> candidates;
  for (const char* const up : {"..", "../..", "../../.."}) {
    candidates.push_back(NormalPath(JoinPath(JoinPath(lib, up), "include")));
  }
  // pip's packages of CUDA 12 have a folder each, those of CUDA 13 one for all.
  candidates.push_back(NormalPath(JoinPath(lib, "../../cuda_runtime/include")));
  for (const std::string& root : PipFolders()) {
    const std::string major = version.substr(0, version.find('.'));
    candidates.push_back(JoinPath(root, "cu" + major + "/include"));
    candidates.push_back(JoinPath(root, "cuda_runtime/include"));
  }
  std::vector<std::string> homes = ChosenHomes();
  homes.push_back(kUsualHome + ("-" + version));
  homes.emplace_back(kUsualHome);
  for (const std::string& home : homes) candidates.push_back(JoinPath(home, "include"));

  ToolkitHeaders found;
  std::set<std::string> seen;
  const auto add = [&](const std::string& directory) {
    if (std::find(found.dirs.begin(), found.dirs.end(), directory) == found.dirs.end()) {
      found.dirs.push_back(directory);
    }
  };
  for (const std::string& directory : candidates) {
    if (!IsDirectory(directory) || !seen.insert(directory).second) continue;
    const std::string theirs = HeaderVersion(directory);
    if (theirs != version) {
      found.notes.push_back(
          "headers in " + directory + " were not used: it " +
          (theirs.empty() ? "has no cuda_runtime_api.h" : "is for CUDA " + theirs) +
          ", but NVRTC is " + version);
      continue;
    }
    // A second place of the same version adds headers that the first lacks: pip's runtime has no
    // CCCL, but the toolkit beside it does.
    add(directory);
    const std::string parent = DirectoryOf(DirectoryOf(directory));
    for (const std::string& companion :
         {JoinPath(directory, "cccl"), JoinPath(parent, "cuda_cccl/include"),
          JoinPath(parent, "curand/include")}) {
      if (IsDirectory(companion)) add(companion);
    }
    if (found.IsWhole()) break;
  }
  if (!found.IsWhole()) {
    std::string why;
    const std::string root = install_bundled(&why);
    if (root.empty()) {
      found.notes.push_back("NVRTC's bundled headers were not used: " + why);
    } else {
      add(root);
      add(JoinPath(root, "cccl"));
    }
  }
  if (found.dirs.empty()) {
    found.notes.push_back("no CUDA " + version +
                          " headers were found: pip install 'nvidia-cuda-runtime==" + version +
                          ".*' nvidia-cuda-crt nvidia-cuda-cccl");
  }
  return found;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
