// One source as NVRTC compiles it: its inputs, and the nvrtcProgram.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../error.h"
#include "../version.h"
#include "base/json_text.h"
#include "base/paths.h"
#include "diagnostics.h"
#include "files/search.h"
#include "source/source_line.h"
#include "toolkit/nvrtc_api.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// One source with everything that it needs, for any number of architectures.
struct Job {
  std::string text;
  std::string name;
  std::optional<std::string> directory;  // where a source that is a file lies
  std::vector<std::string> flags;
  std::vector<std::string> names;  // name expressions
  std::vector<std::string> include_dirs;
  Includes includes;
  bool lto = false;
  bool shows_paths = false;  // the image says where its source is: debug or line information
  bool pch = false;

  // Where the compiler takes the source to be.
  std::string Place() const {
    return JoinPath(directory ? *directory : "/culaunch/source", BaseName(name));
  }
  // The name of the source for the compiler.
  std::string ShownName() const {
    return shows_paths && directory ? JoinPath(*directory, name) : name;
  }
  bool UsesToolkit() const { return includes.system_files != 0 || !includes.unknown.empty(); }
};

// Text that a compiler wrote; bytes that are not UTF-8 become the replacement character.
inline std::string Decoded(std::string text) {
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  std::string decoded;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    uint32_t point = 0;
    const size_t size = static_cast<unsigned char>(rest[0]) < 0x80 ? 1 : Utf8Size(rest, &point);
    decoded.append(size == 0 ? std::string_view("\xef\xbf\xbd") : rest.substr(0, size));
    at += size == 0 ? 1 : size;
  }
  return decoded;
}

using MakeCompileError = std::function<CompileError(FailedCompile)>;

// An nvrtcProgram.
class Program {
 public:
  Program(Nvrtc* nvrtc, const Job& job, const std::string& text, std::vector<std::string> names)
      : api_(nvrtc->Api()), job_(job), text_(text), names_(std::move(names)) {
    std::vector<const char*> sources, headers;
    for (const auto& [name, contents] : job.includes.memory) {
      headers.push_back(name.c_str());
      sources.push_back(contents.c_str());
    }
    api_.Check(api_.CreateProgram(&handle_, WithLine(text, job.ShownName(), job.pch).c_str(),
                                  job.Place().c_str(), static_cast<int>(sources.size()),
                                  sources.data(), headers.data()),
               "nvrtcCreateProgram");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { api_.DestroyProgram(&handle_); }

  NvrtcProgram handle() const noexcept { return handle_; }

  // Return the log. If the source is refused, throw the error of make_error(failed), which adds
  // what the program does not know: the compiler's version, the headers, the wording.
  std::string Compile(const std::vector<std::string>& flags,
                      const MakeCompileError& make_error) const {
    for (const std::string& name : names_) {
      api_.Check(api_.AddNameExpression(handle_, name.c_str()), "nvrtcAddNameExpression");
    }
    std::vector<const char*> options;
    for (const std::string& flag : flags) options.push_back(flag.c_str());
    const int status =
        api_.CompileProgram(handle_, static_cast<int>(options.size()), options.data());
    std::string log = Decoded(Get("ProgramLog"));
    const std::string place = job_.Place();
    for (size_t at = 0; (at = log.find(place, at)) != std::string::npos;) {
      log.replace(at, place.size(), job_.ShownName());
      at += job_.ShownName().size();
    }
    if (status == kNvrtcSuccess) return log;
    FailedCompile failed;
    failed.log = log.empty() ? api_.ErrorString(status) : log;
    failed.flags = flags;
    for (const auto& [name, contents] : job_.includes.memory) failed.sources[name] = contents;
    failed.sources[job_.ShownName()] = text_;
    throw make_error(std::move(failed));
  }

  std::string Lowered(const std::string& name) const {
    const char* lowered = nullptr;
    if (api_.GetLoweredName(handle_, name.c_str(), &lowered) != kNvrtcSuccess) {
      throw CompileError("names has " + name + ", for which NVRTC gives no lowered name", "");
    }
    return lowered;
  }

  std::string Get(std::string_view what) const {
    const auto output = std::find_if(api_.outputs.begin(), api_.outputs.end(),
                                     [&](const auto& one) { return what == one.what; });
    size_t size = 0;
    api_.Check(output->size(handle_, &size), output->what);
    std::string contents(size, '\0');
    if (size != 0) api_.Check(output->get(handle_, &contents[0]), output->what);
    return contents;
  }

 private:
  const NvrtcApi& api_;
  const Job& job_;
  const std::string& text_;
  std::vector<std::string> names_;
  NvrtcProgram handle_ = nullptr;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
