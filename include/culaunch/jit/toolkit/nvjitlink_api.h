// nvJitLink's functions, found when they are first used. Its header is not needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "../../text.h"
#include "../../version.h"
#include "cuda_places.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

using NvJitLinkHandle = struct nvJitLink*;

// nvJitLink's names for the kinds of inputs.
enum class LinkKind { kCubin = 1, kPtx = 2, kFatbin = 4, kObject = 5, kLibrary = 6 };

struct NvJitLinkApi {
  explicit NvJitLinkApi(SharedCudaLibrary* library)
      : Version(library->Require<int(unsigned*, unsigned*)>("nvJitLinkVersion")),
        Create(library->Require<int(NvJitLinkHandle*, uint32_t, const char**)>("nvJitLinkCreate")),
        Destroy(library->Require<int(NvJitLinkHandle*)>("nvJitLinkDestroy")),
        AddData(library->Require<int(NvJitLinkHandle, int, const void*, size_t, const char*)>(
            "nvJitLinkAddData")),
        Complete(library->Require<int(NvJitLinkHandle)>("nvJitLinkComplete")),
        cubin(library, "nvJitLinkGetLinkedCubin"),
        ptx(library, "nvJitLinkGetLinkedPtx"),
        error_log(library, "nvJitLinkGetErrorLog"),
        info_log(library, "nvJitLinkGetInfoLog") {}

  // A result whose size must be queried first.
  struct Output {
    Output(SharedCudaLibrary* library, const std::string& name)
        : size(library->Require<int(NvJitLinkHandle, size_t*)>((name + "Size").c_str())),
          get(library->Require<int(NvJitLinkHandle, void*)>(name.c_str())) {}

    // Return the code of the error, or 0.
    int Read(NvJitLinkHandle handle, std::string* found) const {
      size_t bytes = 0;
      int status = size(handle, &bytes);
      found->assign(status == 0 ? bytes : 0, '\0');
      if (!found->empty()) status = get(handle, &(*found)[0]);
      return status;
    }

    int (*size)(NvJitLinkHandle, size_t*);
    int (*get)(NvJitLinkHandle, void*);
  };

  static std::string ErrorName(int status) {
    static constexpr const char* const kNames[] = {"SUCCESS",
                                                   "ERROR_UNRECOGNIZED_OPTION",
                                                   "ERROR_MISSING_ARCH",
                                                   "ERROR_INVALID_INPUT",
                                                   "ERROR_PTX_COMPILE",
                                                   "ERROR_NVVM_COMPILE",
                                                   "ERROR_INTERNAL",
                                                   "ERROR_THREADPOOL",
                                                   "ERROR_UNRECOGNIZED_INPUT",
                                                   "ERROR_FINALIZE"};
    const std::string code = "(" + detail::ToText(status) + ")";
    const bool is_known = status >= 0 && status < static_cast<int>(sizeof kNames / sizeof *kNames);
    return is_known ? kNames[status] + (" " + code) : "error " + code;
  }

  int (*Version)(unsigned*, unsigned*);
  int (*Create)(NvJitLinkHandle*, uint32_t, const char**);
  int (*Destroy)(NvJitLinkHandle*);
  int (*AddData)(NvJitLinkHandle, int, const void*, size_t, const char*);
  int (*Complete)(NvJitLinkHandle);
  Output cubin;
  Output ptx;
  Output error_log;
  Output info_log;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
