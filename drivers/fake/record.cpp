// The log, and the failures that are asked for.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "internal.h"

namespace fake {

std::recursive_mutex mutex;
static std::string record;
static std::map<std::string, int> failures;

void Write(const char* format, ...) {
  if (!kLogs) return;
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  record.append(line).append("\n");
  if (const char* path = std::getenv("FAKE_DRIVER_LOG_FILE")) {
    if (std::FILE* file = std::fopen(path, "a")) {
      std::fprintf(file, "%s\n", line);
      std::fclose(file);
    }
  }
}

CUresult Enter(const char* function, uint64_t* calls) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  ++*calls;
  if (std::getenv("FAKE_DRIVER_CALLS") != nullptr) Write("call %s", function);
  const auto found = failures.find(function);
  if (found == failures.end()) return CUDA_SUCCESS;
  const int code = found->second;
  failures.erase(found);
  return static_cast<CUresult>(code);
}

void ClearCalls();

}  // namespace fake

extern "C" {

const char* fake_driver_log() {
  static std::string copy;
  const std::lock_guard<std::recursive_mutex> lock(fake::mutex);
  copy = fake::record;
  return copy.c_str();
}

void fake_driver_clear() {
  const std::lock_guard<std::recursive_mutex> lock(fake::mutex);
  fake::record.clear();
  fake::failures.clear();
  fake::ClearCalls();
}

void fake_driver_fail(const char* function, int code) {
  const std::lock_guard<std::recursive_mutex> lock(fake::mutex);
  fake::failures[function] = code;
}

}  // extern "C"
