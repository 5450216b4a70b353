// What all compiles of one Jit share, and checks of what it is given.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../error.h"
#include "../version.h"
#include "cache.h"
#include "compiler.h"
#include "files.h"
#include "footprint.h"
#include "options.h"
#include "paths.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

struct MemoryHeaders {
  std::map<std::string, std::string> texts;
  std::string digest;
};

// What all compiles of one Jit share.
struct Session {
  Session(std::string nvrtc_path, CacheOptions options)
      : nvrtc(std::move(nvrtc_path)), cache(std::move(options)) {}

  // What the headers of a source came to when they were last followed.
  struct Known {
    std::string digest;
    Footprint footprint;
  };

  // NVRTC is looked for when it is first needed.
  jit::Compiler& Compiler() {
    const std::lock_guard<std::mutex> lock(compiler_mutex);
    if (compiler == nullptr) compiler = std::make_unique<jit::Compiler>(nvrtc, &cache);
    return *compiler;
  }

  std::string nvrtc;
  Cache cache;
  std::mutex mutex;  // of what follows
  std::shared_ptr<const MemoryHeaders> headers;
  std::shared_ptr<const std::vector<std::string>> dirs;
  std::map<std::string, std::shared_ptr<const Known>> known;  // by the key of the note
  std::mutex compiler_mutex;
  std::unique_ptr<jit::Compiler> compiler;
};

struct SourceText {
  std::string text;
  std::optional<std::string> directory;  // of a file
};

inline SourceText ReadSourceFile(const std::string& path, CompileOptions* options) {
  const std::string absolute = NormalPath(JoinPath(CurrentDirectory(), path));
  const Descriptor opened(open(absolute.c_str(), O_RDONLY | O_CLOEXEC));
  SourceText source;
  if (!opened || !ReadAll(opened.get(), &source.text)) {
    throw Error("cannot read the source " + path);
  }
  source.directory = DirectoryOf(absolute);
  if (options->name.empty()) options->name = BaseName(absolute);
  return source;
}

inline std::string CheckedDirectory(const std::string& path) {
  const std::string directory = NormalPath(JoinPath(CurrentDirectory(), path));
  if (path.empty() || !IsDirectory(directory)) {
    throw Error("\"" + path + "\" is not a directory with headers");
  }
  return directory;
}

inline void CheckHeader(const std::string& name, const std::string& text) {
  bool is_good =
      !name.empty() && name.find_first_of(std::string_view("\\\0", 2)) == std::string::npos;
  for (size_t start = 0; is_good && start <= name.size();) {
    const size_t end = std::min(name.find('/', start), name.size());
    const std::string part = name.substr(start, end - start);
    is_good = !part.empty() && part != "." && part != "..";
    start = end + 1;
  }
  if (!is_good) {
    throw Error("\"" + name + "\" must be the relative name that #include uses, such as " +
                "\"my/math.cuh\"");
  }
  if (text.find('\0') != std::string::npos) {
    throw Error("the header \"" + name + "\" is not text: it has a null byte");
  }
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
