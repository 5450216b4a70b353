// One source to one image, by NVRTC.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../error.h"
#include "../text.h"
#include "../version.h"
#include "base/fork_mutex.h"
#include "base/paths.h"
#include "diagnostics.h"
#include "header_hints.h"
#include "program.h"
#include "signatures.h"
#include "store/image.h"
#include "toolkit/architectures.h"
#include "toolkit/fatbin.h"
#include "toolkit/nvrtc_api.h"
#include "toolkit/pch.h"
#include "toolkit/toolkit.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// The functions that a compiler calls in the code around it.
struct CompilerHost {
  // A directory in the cache, by the names of its parents and itself; empty if there is no room.
  std::function<std::string(const std::string& first, const std::string& second)> private_directory;
  std::function<void(const std::string&)> warn;
  Wording wording = {};
};

// An NVRTC, with the headers that belong to it. Safe to use from many threads.
class Compiler {
 public:
  // The result for one architecture.
  struct Part {
    CompiledPart compiled;
    std::vector<std::pair<std::string, std::string>> names;
    std::vector<std::pair<std::string, Image::Signature>> signatures;
    std::string log;
  };

  // nvrtc: its path, a directory that contains it, or empty.
  Compiler(const std::string& nvrtc, CompilerHost host) : nvrtc_(nvrtc), host_(std::move(host)) {}

  const std::string& Identity() { return nvrtc_.Identity(); }
  const std::string& path() const noexcept { return nvrtc_.path(); }
  std::string Version() { return nvrtc_.Version(); }
  std::vector<int> SupportedArchs() { return nvrtc_.SupportedArchs(); }
  // Load NVRTC, if it is not.
  void Load() { nvrtc_.Api(); }

  // CUDA's own headers, found at first use.
  const ToolkitHeaders& Toolkit() {
    const auto lock = mutex_.Lock();
    if (toolkit_) return *toolkit_;
    const std::string version = nvrtc_.Version();
    toolkit_ = FindToolkitHeaders(version, path(), [&](std::string* why) {
      const NvrtcApi& api = nvrtc_.Api();
      *why = "NVRTC " + version + " has none";
      if (api.InstallBundledHeaders == nullptr) return std::string();
      const auto install = [&](const std::string& root) {
        const char* log = nullptr;
        if (root.empty()) return false;
        const int status = api.InstallBundledHeaders(root.c_str(), 0, &log);
        if (status != kNvrtcSuccess) *why = log != nullptr ? log : api.ErrorString(status);
        return status == kNvrtcSuccess;
      };
      const std::string root =
          host_.private_directory("headers", version + "-" + Identity().substr(0, 16));
      if (root.empty()) *why = "the cache has no room for them";
      if (install(root)) return root;
      // A cache's full disk fails no compile.
      const std::string spare = PrecompiledHeaders::SpareFolder();
      return install(spare) ? spare : std::string();
    });
    return *toolkit_;
  }

  Image Build(const Job& job, const std::vector<std::string>& archs) {
    CheckArchs(archs);
    std::vector<Part> parts;
    for (const std::string& arch : archs) parts.push_back(Compile(job, arch));
    Image image;
    image.names = parts[0].names;
    std::vector<CompiledPart> compiled;
    for (Part& part : parts) {
      if (part.names != image.names) {
        throw CompileError("names are lowered differently for " + parts[0].compiled.arch + " and " +
                               part.compiled.arch + "; compile each architecture separately",
                           "");
      }
      if (!part.log.empty() && !HasLine(image.log, part.log)) {
        image.log.append(image.log.empty() ? "" : "\n").append(part.log);
      }
      compiled.push_back(std::move(part.compiled));
    }
    for (size_t i = parts.size(); i-- > 0;) {
      for (auto& [kernel, types] : parts[i].signatures) SetSignature(kernel, types, &image);
    }
    const bool is_single = compiled.size() == 1;
    image.data = is_single && compiled[0].kind != CompiledPart::Kind::kLtoIr
                     ? std::move(compiled[0].data)
                     : CombineParts(compiled, job.name, {DirectoryOf(path())});
    return image;
  }

  // Throw for an architecture that NVRTC does not know.
  void CheckArchs(const std::vector<std::string>& archs) {
    const std::vector<int> known = nvrtc_.SupportedArchs();
    for (const std::string& arch : archs) {
      if (std::find(known.begin(), known.end(), Architecture(arch).number) != known.end()) continue;
      std::string listed;
      for (const int number : known) {
        listed.append(listed.empty() ? "sm_" : ", sm_").append(detail::ToText(number));
      }
      throw Error("arch \"" + arch + "\" is unknown to NVRTC " + nvrtc_.Version() +
                  ", which supports " + listed);
    }
  }

  Part Compile(const Job& job, const std::string& arch) {
    PrecompiledHeaders::RemoveDeadOnce();
    std::vector<std::string> flags = {"--gpu-architecture=" + arch};
    flags.insert(flags.end(), job.flags.begin(), job.flags.end());
    std::vector<std::string> dirs = job.include_dirs;
    if (job.UsesToolkit()) {
      const ToolkitHeaders& toolkit = Toolkit();
      dirs.insert(dirs.end(), toolkit.dirs.begin(), toolkit.dirs.end());
    }
    for (const std::string& directory : dirs) flags.push_back("--include-path=" + directory);
    if (!job.pch) return Compile(job, arch, flags, flags);
    PrecompiledHeaders& headers = PrecompiledHeaders::Get();
    const auto lock = headers.Lock();
    // A precompiled header is good for one preamble: NVRTC compares the preamble's text and the
    // times of files, but not the contents of in-memory headers.
    std::vector<std::string> identity = {arch};
    identity.insert(identity.end(), flags.begin(), flags.end());
    identity.push_back(job.includes.digest);
    std::vector<std::string> all = flags;
    for (std::string& flag : headers.Flags(nvrtc_.Api(), identity, host_.warn)) {
      all.push_back(std::move(flag));
    }
    return Compile(job, arch, all, flags);
  }

 private:
  Part Compile(const Job& job, const std::string& arch, const std::vector<std::string>& flags,
               const std::vector<std::string>& plain_flags) {
    Part part;
    const Program program(&nvrtc_, job, job.includes.text, job.names);
    part.log = program.Compile(flags, Refusal(job));
    if (job.pch) PrecompiledHeaders::RaiseHeap(nvrtc_.Api(), program.handle());
    for (const std::string& name : job.names) part.names.emplace_back(name, program.Lowered(name));
    part.compiled.arch = arch;
    if (job.lto) {
      part.compiled.kind = CompiledPart::Kind::kLtoIr;
      part.compiled.data = program.Get("LTOIR");
      return part;
    }
    std::string ptx = program.Get("PTX");
    while (!ptx.empty() && ptx.back() == '\0') ptx.pop_back();
    Probe probe;
    if (!job.includes.IsHeavy()) {
      probe = [&](const std::string& text, const std::map<std::string, std::string>& expressions) {
        return Ask(job, plain_flags, text, expressions);
      };
    }
    part.signatures = KernelSignatures(ptx, job.includes.text, probe);
    const bool is_virtual = Architecture(arch).is_virtual;
    part.compiled.kind = is_virtual ? CompiledPart::Kind::kPtx : CompiledPart::Kind::kCubin;
    part.compiled.data = is_virtual ? std::move(ptx) : program.Get("CUBIN");
    return part;
  }

  // Ask the front end alone for a mangled name that spells each kernel's type.
  std::map<std::string, std::string> Ask(const Job& job, std::vector<std::string> flags,
                                         const std::string& text,
                                         const std::map<std::string, std::string>& expressions) {
    std::vector<std::string> names;
    for (const auto& one : expressions) names.push_back(one.second);
    flags.push_back("--fdevice-syntax-only");
    std::map<std::string, std::string> found;
    try {
      const std::string extended = job.includes.text + text;
      const Program program(&nvrtc_, job, extended, names);
      program.Compile(flags, Refusal(job));
      for (const auto& [kernel, name] : expressions) found[kernel] = program.Lowered(name);
    } catch (const CompileError&) {
      // A kernel that cannot be named from the outside: the PTX then has to do.
      found.clear();
    }
    return found;
  }

  // A function that makes the error of a program that was refused.
  MakeCompileError Refusal(const Job& job) {
    return [&](FailedCompile failed) {
      failed.compiler = "NVRTC " + nvrtc_.Version();
      if (!job.includes.missing.empty()) failed.notes = Toolkit().notes;
      failed.find = [&](const std::string& name) { return Toolkit().Find(name); };
      failed.wording = host_.wording;
      return Diagnosis(failed).Error();
    };
  }

  static bool HasLine(const std::string& log, const std::string& part) {
    return log == part || log.find(part + "\n") == 0 || log.find("\n" + part) != std::string::npos;
  }

  static void SetSignature(const std::string& kernel, Image::Signature types, Image* image) {
    for (auto& [name, known] : image->signatures) {
      if (name == kernel) {
        known = std::move(types);
        return;
      }
    }
    image->signatures.emplace_back(kernel, std::move(types));
  }

  Nvrtc nvrtc_;
  CompilerHost host_;
  ForkMutex mutex_;
  std::optional<ToolkitHeaders> toolkit_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
