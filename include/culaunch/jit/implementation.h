// What <culaunch/jit.h> declares: include this in one source file of a program or a shared library.
// Two files that do so do no harm but to the time that it takes to compile them.
#pragma once

#if !defined(__cpp_exceptions) && !defined(_CPPUNWIND)
#error \
    "this file has to be compiled with -fexceptions; those that include <culaunch/jit.h> need not"
#endif

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../error.h"
#include "../jit.h"
#include "../text.h"
#include "../version.h"
#include "cache.h"
#include "linker.h"
#include "request.h"
#include "session.h"
#include "store/image_file.h"
#include "store/key.h"

// There once in a program, however many files bring it.
#define CULAUNCH_JIT_ONCE __attribute__((weak))

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

using Names = std::vector<std::string>;

// The result of a call, or the error that it threw.
template <class Value, class Call>
Result<Value> Attempt(const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(error.what());
  }
}

template <class Call>
Status AttemptTo(const Call& call) {
  const Result<bool> done = Attempt<bool>([&] {
    call();
    return true;
  });
  return done ? Status() : Status(done.error());
}

inline void AddTexts(Session* session, std::vector<std::pair<std::string, std::string>> texts) {
  for (const auto& [name, text] : texts) CheckHeader(name, text);
  const std::lock_guard<std::mutex> lock(session->mutex);
  std::shared_ptr<MemoryHeaders> headers(new MemoryHeaders);
  if (session->headers) *headers = *session->headers;
  for (auto& [name, text] : texts) headers->texts[name] = std::move(text);
  headers->digest = HeadersDigest(headers->texts);
  session->headers = std::move(headers);
}

inline Module& LoadedModule(Session* session, SourceText source, const Names& names,
                            const CompileOptions& options) {
  Request request(session, std::move(source), names, options, false);
  std::string key;
  if (const std::optional<std::string> digest = request.Recall()) {
    key = request.Key(*digest);
  } else {
    const Includes& includes = request.Follow();
    if (includes.unknown.empty()) key = request.Key(includes.digest);
  }
  std::shared_ptr<Session::Loaded> loaded;
  {
    const std::lock_guard<std::mutex> lock(session->modules_mutex);
    // One that cannot be known again is another module every time.
    if (key.empty()) key = "unknown " + detail::ToText(session->modules.size());
    std::shared_ptr<Session::Loaded>& known = session->modules[key];
    if (known == nullptr) known.reset(new Session::Loaded);
    loaded = known;
  }
  // One thread compiles and loads it; others that ask for it wait.
  const std::lock_guard<std::mutex> lock(loaded->mutex);
  if (loaded->module == nullptr) {
    loaded->module = std::make_unique<Module>(request.FindImage().Load());
  }
  return *loaded->module;
}

inline Image CompiledImage(Session* session, SourceText source, const Names& names,
                           const CompileOptions& options) {
  return Request(session, std::move(source), names, options, true).FindImage();
}

}  // namespace jit

CULAUNCH_JIT_ONCE Jit::Jit(JitOptions options)
    : session_(std::make_unique<jit::Session>(std::move(options))) {}
CULAUNCH_JIT_ONCE Jit::~Jit() = default;

CULAUNCH_JIT_ONCE Jit& Jit::AddHeader(const std::string& name, const std::string& text) {
  jit::AddTexts(session_.get(), {{name, text}});
  return *this;
}

CULAUNCH_JIT_ONCE Jit& Jit::AddHeaders(const HeaderBundle& bundle) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (size_t i = 0; i < bundle.count; ++i) {
    texts.emplace_back(bundle.names[i], std::string(bundle.texts[i], bundle.sizes[i]));
  }
  jit::AddTexts(session_.get(), std::move(texts));
  return *this;
}

CULAUNCH_JIT_ONCE Jit& Jit::AddDirectory(const std::string& path) {
  const std::string directory = jit::CheckedDirectory(path);
  const std::lock_guard<std::mutex> lock(session_->mutex);
  std::shared_ptr<std::vector<std::string>> dirs(new std::vector<std::string>);
  if (session_->dirs) *dirs = *session_->dirs;
  dirs->push_back(directory);
  session_->dirs = std::move(dirs);
  return *this;
}

CULAUNCH_JIT_ONCE culaunch::Module& Jit::Module(const std::string& source, const jit::Names& names,
                                                const CompileOptions& options) {
  return jit::LoadedModule(session_.get(), {source, std::nullopt}, names, options);
}

CULAUNCH_JIT_ONCE culaunch::Module& Jit::ModuleFromFile(const std::string& path,
                                                        const jit::Names& names,
                                                        const CompileOptions& options) {
  CompileOptions named = options;
  jit::SourceText source = jit::ReadSourceFile(path, &named);
  return jit::LoadedModule(session_.get(), std::move(source), names, named);
}

CULAUNCH_JIT_ONCE Image Jit::Compile(const std::string& source, const jit::Names& names,
                                     const CompileOptions& options) {
  return jit::CompiledImage(session_.get(), {source, std::nullopt}, names, options);
}

CULAUNCH_JIT_ONCE Image Jit::CompileFile(const std::string& path, const jit::Names& names,
                                         const CompileOptions& options) {
  CompileOptions named = options;
  jit::SourceText source = jit::ReadSourceFile(path, &named);
  return jit::CompiledImage(session_.get(), std::move(source), names, named);
}

CULAUNCH_JIT_ONCE Image Jit::Link(const std::vector<LinkInput>& inputs,
                                  const LinkOptions& options) {
  jit::LinkRequest request(&session_->Linker(), inputs, options);
  if (!session_->cache.enabled()) return request.Build();
  return session_->cache.GetOrMake(request.Key(), [&] { return request.Build(); });
}

CULAUNCH_JIT_ONCE Result<culaunch::Module*> Jit::TryModule(const std::string& source,
                                                           const jit::Names& names,
                                                           const CompileOptions& options) {
  return jit::Attempt<culaunch::Module*>([&] { return &Module(source, names, options); });
}

CULAUNCH_JIT_ONCE Result<culaunch::Module*> Jit::TryModuleFromFile(const std::string& path,
                                                                   const jit::Names& names,
                                                                   const CompileOptions& options) {
  return jit::Attempt<culaunch::Module*>([&] { return &ModuleFromFile(path, names, options); });
}

CULAUNCH_JIT_ONCE Result<Image> Jit::TryCompile(const std::string& source, const jit::Names& names,
                                                const CompileOptions& options) {
  return jit::Attempt<Image>([&] { return Compile(source, names, options); });
}

CULAUNCH_JIT_ONCE Result<Image> Jit::TryCompileFile(const std::string& path,
                                                    const jit::Names& names,
                                                    const CompileOptions& options) {
  return jit::Attempt<Image>([&] { return CompileFile(path, names, options); });
}

CULAUNCH_JIT_ONCE Result<Image> Jit::TryLink(const std::vector<LinkInput>& inputs,
                                             const LinkOptions& options) {
  return jit::Attempt<Image>([&] { return Link(inputs, options); });
}

CULAUNCH_JIT_ONCE Status Jit::TryAddHeader(const std::string& name, const std::string& text) {
  return jit::AttemptTo([&] { AddHeader(name, text); });
}

CULAUNCH_JIT_ONCE Status Jit::TryAddDirectory(const std::string& path) {
  return jit::AttemptTo([&] { AddDirectory(path); });
}

CULAUNCH_JIT_ONCE std::string Jit::Key(const std::string& source, const jit::Names& names,
                                       const CompileOptions& options) {
  jit::Request request(session_.get(), {source, std::nullopt}, names, options, true);
  return request.Key(request.IncludesDigest());
}

CULAUNCH_JIT_ONCE std::string Jit::LinkKey(const std::vector<LinkInput>& inputs,
                                           const LinkOptions& options) {
  return jit::LinkRequest(&session_->Linker(), inputs, options).Key();
}

CULAUNCH_JIT_ONCE culaunch::Cache& Jit::cache() noexcept { return session_->cache; }

CULAUNCH_JIT_ONCE const std::string& Jit::NvrtcPath() { return session_->Compiler().path(); }

CULAUNCH_JIT_ONCE Image Image::FromFile(const std::string& path) {
  return jit::ImageOf(jit::ReadFile(path, "the image"), path);
}

CULAUNCH_JIT_ONCE std::string Image::ToFile() const { return jit::FileOf(*this); }

CULAUNCH_JIT_ONCE void Image::Save(const std::string& path) const {
  jit::WriteFile(path, ToFile());
}

CULAUNCH_JIT_ONCE Module Image::Load(ModuleOptions options) const {
  const std::string bytes = ToFile();
  return Module(bytes.data(), bytes.size(), std::move(options));
}

CULAUNCH_NAMESPACE_END

#undef CULAUNCH_JIT_ONCE
