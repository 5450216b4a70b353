// Combine the results for several architectures into one image, with nvFatbin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../../error.h"
#include "../../text.h"
#include "../../version.h"
#include "../base/paths.h"
#include "cuda_places.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// The output for one architecture.
struct CompiledPart {
  enum class Kind { kCubin, kPtx, kLtoIr };

  static Kind KindOf(std::string_view name) {
    return name == "cubin" ? Kind::kCubin : name == "ptx" ? Kind::kPtx : Kind::kLtoIr;
  }
  const char* KindName() const {
    return kind == Kind::kCubin ? "cubin" : kind == Kind::kPtx ? "ptx" : "ltoir";
  }

  std::string arch;
  Kind kind = Kind::kCubin;
  std::string data;
};

// identifier: the name of the parts in the fatbin. first: directories that are searched first, such
// as NVRTC's.
inline std::string CombineParts(const std::vector<CompiledPart>& parts,
                                const std::string& identifier,
                                const std::vector<std::string>& first) {
  using Handle = struct _nvFatbinHandle*;
  SharedCudaLibrary library(NvFatbinLibrary(), "", first);
  auto* const create = library.Require<int(Handle*, const char**, size_t)>("nvFatbinCreate");
  auto* const destroy = library.Require<int(Handle*)>("nvFatbinDestroy");
  auto* const add_cubin =
      library.Require<int(Handle, const void*, size_t, const char*, const char*)>(
          "nvFatbinAddCubin");
  using AddText = int(Handle, const char*, size_t, const char*, const char*, const char*);
  auto* const add_ptx = library.Require<AddText>("nvFatbinAddPTX");
  auto* const add_ltoir = library.Require<AddText>("nvFatbinAddLTOIR");
  auto* const get_size = library.Require<int(Handle, size_t*)>("nvFatbinSize");
  auto* const get = library.Require<int(Handle, void*)>("nvFatbinGet");
  // Uncompressed: the driver loads it sooner, and every tool can read it.
  const char* options[] = {"-64", "-compress=false"};
  Handle handle = nullptr;
  int status = create(&handle, options, 2);
  for (const CompiledPart& part : parts) {
    if (status != 0) break;
    const std::string number = part.arch.substr(part.arch.find('_') + 1);
    const char* const data = part.data.c_str();
    const size_t size = part.data.size();
    if (part.kind == CompiledPart::Kind::kCubin) {
      status = add_cubin(handle, data, size, number.c_str(), identifier.c_str());
    } else {
      auto* const add = part.kind == CompiledPart::Kind::kPtx ? add_ptx : add_ltoir;
      status = add(handle, data, size, number.c_str(), identifier.c_str(), "");
    }
  }
  size_t size = 0;
  if (status == 0) status = get_size(handle, &size);
  std::string fatbin(size, '\0');
  if (status == 0) status = get(handle, &fatbin[0]);
  if (handle != nullptr) destroy(&handle);
  if (status != 0) {
    throw Error(ErrorKind::kDriver, CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN",
                "nvFatbin failed with code " + detail::ToText(status));
  }
  return fatbin;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
