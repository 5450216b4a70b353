// NVRTC for a program on the emulator: PTX instead of machine code. The program is started with
// this library before its own, and the calls continue to its own NVRTC.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using Program = void*;

constexpr int kOutOfMemory = 1;     // NVRTC_ERROR_OUT_OF_MEMORY
constexpr int kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR

// The program's NVRTC, called with the same arguments.
template <typename... Arguments>
int Next(const char* name, Arguments... arguments) {
  auto next = reinterpret_cast<int (*)(Arguments...)>(dlsym(RTLD_NEXT, name));
  return next != nullptr ? next(arguments...) : kInternalError;
}

constexpr const char* kArchitecture[] = {"--gpu-architecture", "-arch"};

// The architecture in an option, or the option itself if it follows one of these names.
const char* ArchitectureIn(const char* option, const char* before) {
  for (const char* name : kArchitecture) {
    size_t size = std::strlen(name);
    if (std::strcmp(before, name) == 0) return option;
    if (std::strncmp(option, name, size) == 0 && option[size] == '=') return option + size + 1;
  }
  return "";
}

// "--gpu-architecture=sm_80" as "--gpu-architecture=compute_80", in new memory; null for any other
// option.
char* WithPtx(const char* option, const char* before) {
  const char* value = ArchitectureIn(option, before);
  if (std::strncmp(value, "sm_", 3) != 0) return nullptr;
  size_t size = std::strlen(option) + sizeof "compute";
  char* text = static_cast<char*>(std::malloc(size));
  if (text != nullptr) {
    std::snprintf(text, size, "%.*scompute_%s", static_cast<int>(value - option), option,
                  value + 3);
  }
  return text;
}

}  // namespace

EXPORTED int nvrtcCompileProgram(Program program, int n, const char* const* options) {
  auto changed = static_cast<const char**>(std::calloc(n > 0 ? 2 * n : 1, sizeof(char*)));
  if (changed == nullptr) return kOutOfMemory;
  const char** own = changed + n;
  for (int i = 0; i < n; ++i) {
    own[i] = WithPtx(options[i], i > 0 ? options[i - 1] : "");
    changed[i] = own[i] != nullptr ? own[i] : options[i];
  }
  int result = Next("nvrtcCompileProgram", program, n, const_cast<const char* const*>(changed));
  for (int i = 0; i < n; ++i) std::free(const_cast<char*>(own[i]));
  std::free(changed);
  return result;
}

EXPORTED int nvrtcGetCUBINSize(Program program, size_t* size) {
  return Next("nvrtcGetPTXSize", program, size);
}

EXPORTED int nvrtcGetCUBIN(Program program, char* image) {
  return Next("nvrtcGetPTX", program, image);
}
