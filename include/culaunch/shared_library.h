// Where a driver table comes from: a shared library that exports the driver API.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "driver_table.h"
#include "error.h"
#include "text.h"
#include "version.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#include <unistd.h>
#endif

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

#if defined(_WIN32)
constexpr const char* kCudaLibrary = "nvcuda.dll";

inline void* OpenLibrary(const std::string& file, std::string* reason) {
  void* library = reinterpret_cast<void*>(LoadLibraryA(file.c_str()));
  if (library == nullptr) *reason = file + " cannot be loaded";
  return library;
}

inline void* FindSymbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}

inline long ProcessId() { return static_cast<long>(GetCurrentProcessId()); }
#else
constexpr const char* kCudaLibrary = "libcuda.so.1";

inline void* OpenLibrary(const std::string& file, std::string* reason) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    *reason = text != nullptr ? text : file + " cannot be loaded";
  }
  return library;
}

inline void* FindSymbol(void* library, const char* name) { return dlsym(library, name); }

inline long ProcessId() { return static_cast<long>(getpid()); }
#endif

// Which of a function's forms cuda.h declares here: with CUDA_API_PER_THREAD_DEFAULT_STREAM, as in
// code that calls the driver by hand, the null stream is each thread's own.
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
constexpr cuuint64_t kProcAddressFlags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
constexpr const char* kSuffixes[] = {"_ptsz", "_ptds", ""};
#else
constexpr cuuint64_t kProcAddressFlags = CU_GET_PROC_ADDRESS_DEFAULT;
constexpr const char* kSuffixes[] = {""};
#endif

// Fill a table through cuGetProcAddress, which knows the versioned names; a library without it
// (a small stand-in) is asked for each symbol.
inline Status ResolveTable(void* library, const std::string& file, DriverTable* table) {
  auto get =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(FindSymbol(library, "cuGetProcAddress_v2"));
  std::string missing;
  int missing_count = 0;
  ForEachFunction(*table, [&](const char* name, int version, bool required, void** function) {
    CUdriverProcAddressQueryResult found;
    if (get == nullptr || get(name, function, version, kProcAddressFlags, &found) != CUDA_SUCCESS) {
      *function = nullptr;
    }
    for (const char* suffix : kSuffixes) {
      if (*function == nullptr)
        *function = FindSymbol(library, (name + std::string(suffix)).c_str());
    }
    if (*function != nullptr || !required) return;
    if (++missing_count <= 3) missing.append(missing.empty() ? "" : ", ").append(name);
  });
  if (table->cuInit == nullptr) {
    return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED",
                 file +
                     " is not a CUDA driver: it has no function cuInit. CULAUNCH_DRIVER must be " +
                     "\"cuda\" or the path of a library that exports the driver API");
  }
  if (missing_count != 0) {
    if (missing_count > 3) missing += " and " + ToText(missing_count - 3) + " more";
    return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED",
                 "the CUDA driver in " + file + " lacks " + missing +
                     ": culaunch needs a driver for CUDA 12.4 or newer");
  }
  return {};
}

// A driver that is not libcuda may say which of DLPack's device types are its memory:
// `const int culaunch_device_types[]`, ended by -1.
inline std::vector<int> DeviceTypes(void* library) {
  std::vector<int> types;
  auto* declared = static_cast<const int*>(FindSymbol(library, "culaunch_device_types"));
  if (declared == nullptr) return {kDLCUDA, kDLCUDAManaged, kDLCUDAHost};
  for (; *declared != -1; ++declared) types.push_back(*declared);
  return types;
}

}  // namespace detail

CULAUNCH_NAMESPACE_END
