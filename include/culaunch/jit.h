// culaunch::Jit: compiles CUDA C++ source to kernels while a program runs, through NVRTC, which is
// found and loaded on demand. Images are cached in the same cache as Python's culaunch.compile:
// each uses the other's entries.
//
// This header only declares, and compiles quickly. The implementation is compiled once in a
// program, by CMake's culaunch::jit, or by one source file that includes
// <culaunch/jit/implementation.h>.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "error.h"
#include "jit/bundle.h"
#include "jit/cache_options.h"
#include "jit/compile_error.h"
#include "jit/compile_options.h"
#include "jit/link_options.h"
#include "jit/store/image.h"
#include "module.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {
struct Session;
}  // namespace jit

class Cache;

struct JitOptions {
  std::string nvrtc;      // the path of libnvrtc, or of its directory; found if it is left out
  std::string nvjitlink;  // of libnvJitLink; looked for beside NVRTC first if it is left out
  CacheOptions cache;     // where compiled images are kept
};

// Compiles sources and keeps their modules. Safe to use from many threads: different sources are
// compiled at once, and each once.
class Jit {
 public:
  explicit Jit(JitOptions options = {});
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;
  // Unloads the modules: kernels of them that still run must have ended.
  ~Jit();

  // A header in memory, by the name that #include uses. It wins over directories, for every source
  // that is compiled from now on.
  Jit& AddHeader(const std::string& name, const std::string& text);

  // Headers that culaunch_add_headers() embedded: AddHeaders(CULAUNCH_HEADERS(bundle)).
  Jit& AddHeaders(const HeaderBundle& bundle);

  // A directory with headers, searched after those in memory and before CUDA's own.
  Jit& AddDirectory(const std::string& path);

  // The module of a source, compiled with these name expressions ("scale<float, 4>") for the device
  // in use, or loaded before. It stays as long as this object. Asking again looks whether a header
  // has changed on the disk: keep the module, or its kernels, if that matters.
  culaunch::Module& Module(const std::string& source, const std::vector<std::string>& names = {},
                           const CompileOptions& options = {});

  // The same of a file, whose own directory is searched for #include "..." first.
  culaunch::Module& ModuleFromFile(const std::string& path,
                                   const std::vector<std::string>& names = {},
                                   const CompileOptions& options = {});

  // Only the image. No driver is needed if you name the architecture.
  Image Compile(const std::string& source, const std::vector<std::string>& names = {},
                const CompileOptions& options = {});

  Image CompileFile(const std::string& path, const std::vector<std::string>& names = {},
                    const CompileOptions& options = {});

  // Link images compiled with lto or relocatable, PTX and files to one finished image. The result
  // has the names and signatures of all, and is cached like compiled images. nvJitLink does the
  // work.
  Image Link(const std::vector<LinkInput>& inputs, const LinkOptions& options = {});

  // For programs without exceptions.
  Result<culaunch::Module*> TryModule(const std::string& source,
                                      const std::vector<std::string>& names = {},
                                      const CompileOptions& options = {});
  Result<culaunch::Module*> TryModuleFromFile(const std::string& path,
                                              const std::vector<std::string>& names = {},
                                              const CompileOptions& options = {});
  Result<Image> TryCompile(const std::string& source, const std::vector<std::string>& names = {},
                           const CompileOptions& options = {});
  Result<Image> TryCompileFile(const std::string& path, const std::vector<std::string>& names = {},
                               const CompileOptions& options = {});
  Result<Image> TryLink(const std::vector<LinkInput>& inputs, const LinkOptions& options = {});
  Status TryAddHeader(const std::string& name, const std::string& text);
  Status TryAddDirectory(const std::string& path);

  // The cache key of a source's image: the same as Python's for the same request.
  std::string Key(const std::string& source, const std::vector<std::string>& names = {},
                  const CompileOptions& options = {});
  // The same of a link.
  std::string LinkKey(const std::vector<LinkInput>& inputs, const LinkOptions& options = {});

  // The cache; <culaunch/jit/cache.h> declares its operations.
  culaunch::Cache& cache() noexcept;
  // The libnvrtc that is used.
  const std::string& NvrtcPath();

 private:
  std::unique_ptr<jit::Session> session_;
};

CULAUNCH_NAMESPACE_END
