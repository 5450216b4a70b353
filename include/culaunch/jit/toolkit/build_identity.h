// The identity of one build of a compiler's library.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../../error.h"
#include "../../text.h"
#include "../../version.h"
#include "../base/paths.h"
#include "../base/sha256.h"
#include "../files/files.h"
#include "cuda_places.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// No version pins a build: two patch releases share them. NVRTC's builtins beside it belong to it.
inline std::string BuildIdentity(const std::string& library) {
  const std::string directory = DirectoryOf(library);
  std::vector<std::string> names = {BaseName(library)};
  for (const std::string& name : NamesIn(directory)) {
    if (StartsWith(name, "libnvrtc-builtins")) names.push_back(name);
  }
  // The build id and everything else that the linker wrote about a build lies within this.
  constexpr size_t kHead = 1 << 16;
  Sha256 digest;
  for (const std::string& name : names) {
    const Descriptor opened(open(JoinPath(directory, name).c_str(), O_RDONLY | O_CLOEXEC));
    std::string head(kHead, '\0');
    FileStatus status;
    const ssize_t got = opened ? read(opened.get(), &head[0], kHead) : -1;
    if (got < 0 || fstat(opened.get(), &status) != 0) {
      throw Error("cannot read " + JoinPath(directory, name));
    }
    head.resize(static_cast<size_t>(got));
    digest.Add(head).Add(detail::ToText(status.st_size));
  }
  return digest.Hex();
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
