// NVRTC's functions, found when they are first used. Its header is not needed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "../../error.h"
#include "../../text.h"
#include "../../version.h"
#include "../base/fork_mutex.h"
#include "../base/paths.h"
#include "../files/files.h"
#include "build_identity.h"
#include "cuda_places.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

using NvrtcProgram = struct _nvrtcProgram*;
constexpr int kNvrtcSuccess = 0;

struct NvrtcApi {
  explicit NvrtcApi(SharedCudaLibrary* library)
      : Version(library->Require<int(int*, int*)>("nvrtcVersion")),
        NumSupportedArchs(library->Require<int(int*)>("nvrtcGetNumSupportedArchs")),
        SupportedArchs(library->Require<int(int*)>("nvrtcGetSupportedArchs")),
        ErrorString(library->Require<const char*(int)>("nvrtcGetErrorString")),
        CreateProgram(
            library->Require<int(NvrtcProgram*, const char*, const char*, int, const char* const*,
                                 const char* const*)>("nvrtcCreateProgram")),
        DestroyProgram(library->Require<int(NvrtcProgram*)>("nvrtcDestroyProgram")),
        AddNameExpression(
            library->Require<int(NvrtcProgram, const char*)>("nvrtcAddNameExpression")),
        CompileProgram(
            library->Require<int(NvrtcProgram, int, const char* const*)>("nvrtcCompileProgram")),
        GetLoweredName(
            library->Require<int(NvrtcProgram, const char*, const char**)>("nvrtcGetLoweredName")),
        GetPchHeapSize(library->Find<int(size_t*)>("nvrtcGetPCHHeapSize")),
        SetPchHeapSize(library->Find<int(size_t)>("nvrtcSetPCHHeapSize")),
        GetPchCreateStatus(library->Find<int(NvrtcProgram)>("nvrtcGetPCHCreateStatus")),
        GetPchHeapSizeRequired(
            library->Find<int(NvrtcProgram, size_t*)>("nvrtcGetPCHHeapSizeRequired")),
        InstallBundledHeaders(
            library->Find<int(const char*, unsigned, const char**)>("nvrtcInstallBundledHeaders")) {
    for (const char* const what : {"ProgramLog", "PTX", "CUBIN", "LTOIR"}) {
      const std::string name = std::string("nvrtcGet") + what;
      outputs.push_back({what,
                         library->Require<int(NvrtcProgram, size_t*)>((name + "Size").c_str()),
                         library->Require<int(NvrtcProgram, char*)>(name.c_str())});
    }
  }

  struct Output {
    const char* what;
    int (*size)(NvrtcProgram, size_t*);
    int (*get)(NvrtcProgram, char*);
  };

  int (*Version)(int*, int*);
  int (*NumSupportedArchs)(int*);
  int (*SupportedArchs)(int*);
  const char* (*ErrorString)(int);
  int (*CreateProgram)(NvrtcProgram*, const char*, const char*, int, const char* const*,
                       const char* const*);
  int (*DestroyProgram)(NvrtcProgram*);
  int (*AddNameExpression)(NvrtcProgram, const char*);
  int (*CompileProgram)(NvrtcProgram, int, const char* const*);
  int (*GetLoweredName)(NvrtcProgram, const char*, const char**);
  // Of NVRTC 12.8, 13.3 and later.
  int (*GetPchHeapSize)(size_t*);
  int (*SetPchHeapSize)(size_t);
  int (*GetPchCreateStatus)(NvrtcProgram);
  int (*GetPchHeapSizeRequired)(NvrtcProgram, size_t*);
  int (*InstallBundledHeaders)(const char*, unsigned, const char**);
  std::vector<Output> outputs;

  void Check(int status, const std::string& what) const {
    if (status == kNvrtcSuccess) return;
    throw Error(ErrorKind::kDriver, CUDA_ERROR_UNKNOWN, ErrorString(status),
                "NVRTC failed at " + what + ": " + ErrorString(status));
  }
};

// One build of NVRTC, which is loaded when it is first asked to compile. The build is identified
// without loading it, and a program that finds everything in the cache never loads it.
class Nvrtc {
 public:
  // given: its path, a directory that contains it, or empty.
  explicit Nvrtc(const std::string& given) : library_(NvrtcLibrary(), given) {}

  const std::string& path() const noexcept { return library_.path(); }

  // The identity of this build. A version is not enough: two patch releases share one.
  const std::string& Identity() {
    const auto lock = mutex_.Lock();
    if (identity_.empty()) identity_ = BuildIdentity(path());
    return identity_;
  }

  // "13.5": the names of its builtins contain it.
  std::string Version() {
    std::string found;
    int count = 0;
    for (const std::string& name : NamesIn(DirectoryOf(path()))) {
      static constexpr char kStart[] = "libnvrtc-builtins.so.";
      if (name.compare(0, sizeof kStart - 1, kStart) != 0) continue;
      const std::string version = name.substr(sizeof kStart - 1);
      const size_t dot = version.find('.');
      if (dot == std::string::npos || version.find('.', dot + 1) != std::string::npos) continue;
      found = version;
      ++count;
    }
    if (count == 1) return found;
    int major = 0;
    int minor = 0;
    Api().Check(Api().Version(&major, &minor), "nvrtcVersion");
    return detail::ToText(major) + "." + detail::ToText(minor);
  }

  // Load it, if it is not.
  const NvrtcApi& Api() {
    const auto lock = mutex_.Lock();
    if (api_ != nullptr) return *api_;
    api_ = std::make_unique<NvrtcApi>(&library_);
    // NVRTC opens its builtins by their plain name. If its own search path does not apply, as under
    // a sanitizer, it finds them because they are loaded.
    const std::string directory = DirectoryOf(path());
    for (const std::string& name : NamesIn(directory)) {
      if (name.compare(0, 21, "libnvrtc-builtins.so.") == 0) {
        dlopen(JoinPath(directory, name).c_str(), RTLD_NOW | RTLD_LOCAL);
      }
    }
    return *api_;
  }

  std::vector<int> SupportedArchs() {
    const NvrtcApi& api = Api();
    int count = 0;
    api.Check(api.NumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
    std::vector<int> found(static_cast<size_t>(count));
    api.Check(api.SupportedArchs(found.data()), "nvrtcGetSupportedArchs");
    return found;
  }

 private:
  ForkMutex mutex_;
  SharedCudaLibrary library_;
  std::string identity_;
  std::unique_ptr<NvrtcApi> api_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
