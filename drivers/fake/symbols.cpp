// How callers find the functions: those of culaunch's table by cuGetProcAddress, through a count of
// calls if there is a log; everything else by its symbol.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "culaunch/driver_table.h"
#include "internal.h"

namespace fake {
namespace {

#define NAME(function, version, required) #function,
constexpr const char* kNames[] = {CULAUNCH_DRIVER_FUNCTIONS(NAME)};
#undef NAME
constexpr size_t kCount = sizeof kNames / sizeof *kNames;

uint64_t calls[kCount];
cuuint64_t address_flags;

constexpr size_t IndexOf(const char* name) {
  for (size_t i = 0; i < kCount; ++i) {
    const char *a = kNames[i], *b = name;
    while (*a != 0 && *a == *b) ++a, ++b;
    if (*a == *b) return i;
  }
  return kCount;
}

// The function behind a count.
template <size_t index, auto function>
struct Counted;
template <size_t index, class... Arguments, CUresult (*function)(Arguments...)>
struct Counted<index, function> {
  static CUresult Call(Arguments... arguments) {
    const CUresult asked = Enter(kNames[index], &calls[index]);
    return asked != CUDA_SUCCESS ? asked : function(arguments...);
  }
};

template <size_t index, auto function>
void* Address() {
  return kLogs ? reinterpret_cast<void*>(&Counted<index, function>::Call)
               : reinterpret_cast<void*>(function);
}

// One that this driver does not have is an undefined reference when it is linked: add it.
void* OfTable(const char* name) {
#define FIND(function, version, required) \
  if (std::strcmp(name, #function) == 0) return Address<IndexOf(#function), &::function>();
  CULAUNCH_DRIVER_FUNCTIONS(FIND)
#undef FIND
  return nullptr;
}

// dlsym on this library finds a function under its plain name or one of cuda.h's versioned names.
// The newest version comes first because cuda.h made us export that one.
void* OfSymbol(const char* symbol) {
  static std::atomic<void*> self{nullptr};
  void* handle = self.load();
  if (handle == nullptr) {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&OfSymbol), &info) == 0) return nullptr;
    handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    self.store(handle);
  }
  char name[128];
  for (const char* suffix : {"", "_v2", "_v3", "_v4"}) {
    const int length = std::snprintf(name, sizeof name, "%s%s", symbol, suffix);
    if (handle == nullptr || length >= static_cast<int>(sizeof name)) break;
    if (void* address = dlsym(handle, name)) return address;
  }
  return nullptr;
}

CUresult NotSupported() { return CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace

void ClearCalls() {
  for (uint64_t& count : calls) count = 0;
}

}  // namespace fake

extern "C" {

FAKE_EXPORT extern const int culaunch_device_types[] = {
    culaunch::kDLCPU, culaunch::kDLCUDA, culaunch::kDLCUDAManaged, culaunch::kDLCUDAHost, -1};

uint64_t fake_driver_calls(const char* function) {
  const std::lock_guard<std::recursive_mutex> lock(fake::mutex);
  uint64_t sum = 0;
  for (size_t i = 0; i < fake::kCount; ++i) {
    if (function == nullptr || std::strcmp(function, fake::kNames[i]) == 0) sum += fake::calls[i];
  }
  return sum;
}

unsigned long long fake_driver_address_flags() { return fake::address_flags; }

CUresult cuGetProcAddress(const char* symbol, void** address, int, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  fake::address_flags = flags;
  *address = fake::OfTable(symbol);
  if (*address == nullptr) *address = fake::OfSymbol(symbol);
  if (*address == nullptr) *address = reinterpret_cast<void*>(&fake::NotSupported);
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

// NVRTC looks for this driver too, by its SONAME, and does not expect a library without it. The
// tables are undocumented; each begins with its size, and these are empty.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  static const size_t empty[1] = {sizeof empty};
  *table = empty;
  return CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
