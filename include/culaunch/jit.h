// culaunch::Jit: CUDA C++ source to kernels while a program runs, through NVRTC, which is found and
// loaded when it is first needed. What was compiled is kept in the cache that Python's
// culaunch.compile uses: an entry that one wrote serves the other.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "error.h"
#include "jit/bundle.h"
#include "jit/cache.h"
#include "jit/image.h"
#include "jit/key.h"
#include "jit/options.h"
#include "jit/request.h"
#include "module.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

struct JitOptions {
  std::string nvrtc;   // the path of libnvrtc, or of its directory; found where
                       // it is left out
  CacheOptions cache;  // where compiled images are kept
};

// Compiles sources and keeps their modules. Safe to use from many threads: different sources are
// compiled at once, and each once.
class Jit {
 public:
  explicit Jit(JitOptions options = {})
      : session_(std::move(options.nvrtc), std::move(options.cache)) {}
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;
  // Unloads the modules: kernels of them that still run must have ended.
  ~Jit() = default;

  // A header in memory, by the name that #include uses. It wins over directories, for every source
  // that is compiled from now on.
  Jit& AddHeader(const std::string& name, std::string text) {
    return AddTexts({{name, std::move(text)}});
  }

  // Headers that culaunch_add_headers() embedded: AddHeaders(CULAUNCH_HEADERS(bundle)).
  Jit& AddHeaders(const HeaderBundle& bundle) {
    std::vector<std::pair<std::string, std::string>> texts;
    for (size_t i = 0; i < bundle.count; ++i) {
      texts.emplace_back(bundle.names[i], std::string(bundle.texts[i], bundle.sizes[i]));
    }
    return AddTexts(std::move(texts));
  }

  // A directory with headers, searched after those in memory and before CUDA's own.
  Jit& AddDirectory(const std::string& path) {
    const std::string directory = jit::CheckedDirectory(path);
    const std::lock_guard<std::mutex> lock(session_.mutex);
    std::shared_ptr<std::vector<std::string>> dirs(new std::vector<std::string>);
    if (session_.dirs) *dirs = *session_.dirs;
    dirs->push_back(directory);
    session_.dirs = std::move(dirs);
    return *this;
  }

  // The module of a source, compiled with these name expressions ("scale<float, 4>") for the device
  // in use, or loaded before. It stays as long as this object. Asking again looks whether a header
  // has changed on the disk: keep the module, or its kernels, where that matters.
  culaunch::Module& Module(const std::string& source, const std::vector<std::string>& names = {},
                           const CompileOptions& options = {}) {
    return LoadedModule({source, std::nullopt}, names, options);
  }

  // The same of a file, whose own directory is searched for #include "..." first.
  culaunch::Module& ModuleFromFile(const std::string& path,
                                   const std::vector<std::string>& names = {},
                                   const CompileOptions& options = {}) {
    CompileOptions named = options;
    jit::SourceText source = jit::ReadSourceFile(path, &named);
    return LoadedModule(std::move(source), names, named);
  }

  // The image alone; no driver is needed where the architecture is given.
  Image Compile(const std::string& source, const std::vector<std::string>& names = {},
                const CompileOptions& options = {}) {
    jit::Request request(&session_, {source, std::nullopt}, names, options, true);
    return request.FindImage();
  }

  Image CompileFile(const std::string& path, const std::vector<std::string>& names = {},
                    const CompileOptions& options = {}) {
    CompileOptions named = options;
    jit::Request request(&session_, jit::ReadSourceFile(path, &named), names, named, true);
    return request.FindImage();
  }

  // What the image of a source is kept by: the same as Python's for the same request.
  std::string Key(const std::string& source, const std::vector<std::string>& names = {},
                  const CompileOptions& options = {}) {
    jit::Request request(&session_, {source, std::nullopt}, names, options, true);
    return request.Key(request.IncludesDigest());
  }

  culaunch::Cache& cache() noexcept { return session_.cache; }
  // The libnvrtc that is used.
  const std::string& NvrtcPath() { return session_.Compiler().path(); }

 private:
  struct Loaded {
    std::mutex mutex;
    std::optional<culaunch::Module> module;
  };

  Jit& AddTexts(std::vector<std::pair<std::string, std::string>> texts) {
    for (const auto& [name, text] : texts) jit::CheckHeader(name, text);
    const std::lock_guard<std::mutex> lock(session_.mutex);
    std::shared_ptr<jit::MemoryHeaders> headers(new jit::MemoryHeaders);
    if (session_.headers) *headers = *session_.headers;
    for (auto& [name, text] : texts) headers->texts[name] = std::move(text);
    headers->digest = jit::HeadersDigest(headers->texts);
    session_.headers = std::move(headers);
    return *this;
  }

  culaunch::Module& LoadedModule(jit::SourceText source, const std::vector<std::string>& names,
                                 const CompileOptions& options) {
    jit::Request request(&session_, std::move(source), names, options, false);
    std::string key;
    if (const std::optional<std::string> digest = request.Recall()) {
      key = request.Key(*digest);
    } else {
      const jit::Includes& includes = request.Follow();
      if (includes.unknown.empty()) key = request.Key(includes.digest);
    }
    std::shared_ptr<Loaded> loaded;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      // One that cannot be known again is another module every time.
      if (key.empty()) key = "unknown " + detail::ToText(modules_.size());
      std::shared_ptr<Loaded>& known = modules_[key];
      if (known == nullptr) known.reset(new Loaded);
      loaded = known;
    }
    // One thread compiles and loads it; others that ask for it wait.
    const std::lock_guard<std::mutex> lock(loaded->mutex);
    if (!loaded->module) {
      const std::string bytes = request.FindImage().ToFile();
      loaded->module.emplace(bytes.data(), bytes.size());
    }
    return *loaded->module;
  }

  jit::Session session_;
  std::mutex mutex_;  // of the modules
  std::map<std::string, std::shared_ptr<Loaded>> modules_;
};

CULAUNCH_NAMESPACE_END
