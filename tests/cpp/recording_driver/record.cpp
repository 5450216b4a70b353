// The record, the failures that are asked for, and the table of functions.
#include <cuda.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "culaunch/driver_table.h"
#include "internal.h"

namespace recording {

std::recursive_mutex mutex;
static std::string record;
static std::map<std::string, int> failures;
static cuuint64_t address_flags;

void Write(const char* format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  record.append(line).append("\n");
  if (const char* path = std::getenv("RECORDING_DRIVER_LOG")) {
    if (std::FILE* file = std::fopen(path, "a")) {
      std::fprintf(file, "%s\n", line);
      std::fclose(file);
    }
  }
}

CUresult Failure(const char* function) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const auto found = failures.find(function);
  if (found == failures.end()) return CUDA_SUCCESS;
  const int code = found->second;
  failures.erase(found);
  return static_cast<CUresult>(code);
}
}  // namespace recording

using recording::address_flags;
using recording::failures;
using recording::mutex;
using recording::record;

extern "C" {

// Its memory is the host's, and tests pass both kinds of array.
__attribute__((visibility("default"))) extern const int culaunch_device_types[] = {1, 2, 13, 3, -1};

const char* recording_log() {
  static std::string copy;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  copy = record;
  return copy.c_str();
}
void recording_clear() {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  record.clear();
  failures.clear();
}
void recording_fail(const char* function, int code) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  failures[function] = code;
}

unsigned long long recording_address_flags() { return address_flags; }

CUresult cuGetProcAddress(const char* name, void** function, int, cuuint64_t flags,
                          CUdriverProcAddressQueryResult*) {
  address_flags = flags;
#define FIND(candidate, version, required)           \
  if (std::strcmp(name, #candidate) == 0) {          \
    *function = reinterpret_cast<void*>(&candidate); \
    return CUDA_SUCCESS;                             \
  }
  CULAUNCH_DRIVER_FUNCTIONS(FIND)
#undef FIND
  *function = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
