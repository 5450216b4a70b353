// The state that all compilations of one Jit share, and checks of its inputs.
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
#include "../jit.h"
#include "../module.h"
#include "../version.h"
#include "base/paths.h"
#include "cache.h"
#include "compiler.h"
#include "files/files.h"
#include "files/footprint.h"
#include "linker.h"
#include "options.h"
#include "store/image_file.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

struct MemoryHeaders {
  std::map<std::string, std::string> texts;
  std::string digest;
};

// The state that all compilations and links of one Jit share.
struct Session {
  explicit Session(JitOptions options)
      : nvrtc(std::move(options.nvrtc)),
        nvjitlink(std::move(options.nvjitlink)),
        cache(std::move(options.cache)) {}

  // The digest of a source's headers from the last scan.
  struct Known {
    std::string digest;
    Footprint footprint;
  };

  // NVRTC is looked for when it is first needed.
  jit::Compiler& Compiler() {
    const std::lock_guard<std::mutex> lock(compiler_mutex);
    if (compiler == nullptr) {
      CompilerHost host;
      host.private_directory = [this](const std::string& first, const std::string& second) {
        return cache.PrivateDirectory(first, second);
      };
      host.warn = [this](const std::string& text) { cache.Report(text); };
      compiler = std::make_unique<jit::Compiler>(nvrtc, std::move(host));
    }
    return *compiler;
  }

  // nvJitLink is looked for on demand, beside NVRTC. Both should have the same version.
  jit::Linker& Linker() {
    const std::lock_guard<std::mutex> lock(linker_mutex);
    if (linker == nullptr) {
      const std::string beside = NvrtcDirectory();
      linker = std::make_unique<jit::Linker>(
          nvjitlink, beside.empty() ? std::vector<std::string>() : std::vector{beside});
    }
    return *linker;
  }

  // Empty if there is none: existing images need no compiler.
  std::string NvrtcDirectory() {
    try {
      return DirectoryOf(Compiler().path());
    } catch (const Error&) {
      return {};
    }
  }

  // A module that is being made, or is there.
  struct Loaded {
    std::mutex mutex;
    std::unique_ptr<Module> module;
  };

  const std::string nvrtc;
  const std::string nvjitlink;
  Cache cache;
  std::mutex modules_mutex;
  std::map<std::string, std::shared_ptr<Loaded>> modules;  // by the key
  std::mutex mutex;                                        // of the next three
  std::shared_ptr<const MemoryHeaders> headers;
  std::shared_ptr<const std::vector<std::string>> dirs;
  std::map<std::string, std::shared_ptr<const Known>> known;  // by the key of the note
  std::mutex compiler_mutex;
  std::unique_ptr<jit::Compiler> compiler;
  std::mutex linker_mutex;
  std::unique_ptr<jit::Linker> linker;
};

struct SourceText {
  std::string text;
  std::optional<std::string> directory;  // of a file
};

inline SourceText ReadSourceFile(const std::string& path, CompileOptions* options) {
  const std::string absolute = NormalPath(JoinPath(CurrentDirectory(), path));
  SourceText source;
  source.text = ReadFile(absolute, "the source");
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
