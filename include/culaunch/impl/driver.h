// What driver.h declares: the driver that is chosen, opened and asked.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "../driver.h"
#include "../emulator.h"
#include "../error.h"
#include "../lock.h"
#include "../shared_library.h"
#include "../text.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

struct Driver::Default {
  Mutex mutex;
  std::atomic<Driver*> driver{nullptr};
};

// Inline, whatever CULAUNCH_HEADER_ONLY is: all files of a program have one.
inline Driver::Default& Driver::TheDefault() noexcept {
  static Default instance;
  return instance;
}

CULAUNCH_INLINE Driver& Driver::None() noexcept {
  alignas(Driver) static unsigned char place[sizeof(Driver)];
  static auto* const none = new (place) Driver(DriverTable(), {}, {}, NotInitialised());
  return *none;
}

CULAUNCH_INLINE Result<Driver*> Driver::TryGet() {
  Default& known = TheDefault();
  if (Driver* driver = known.driver.load(std::memory_order_acquire)) return driver;
  // Not under the lock: Python runs, and with it perhaps a thread that waits here.
  if (Choice() == "emulator" && !IsPublished()) detail::StartEmulator();
  const LockGuard lock(known.mutex);
  if (Driver* driver = known.driver.load(std::memory_order_relaxed)) return driver;
  Result<std::unique_ptr<Driver>> chosen = Choose();
  if (!chosen) return chosen.error();
  TakesNoNotes().store((*chosen)->note_array == nullptr, std::memory_order_relaxed);
  known.driver.store(chosen->get(), std::memory_order_release);
  return chosen->release();  // lives as long as the process, or until CloseDefault()
}

CULAUNCH_INLINE void Driver::CloseDefault() noexcept {
  TakesNoNotes().store(false, std::memory_order_relaxed);
  const std::unique_ptr<Driver> driver(TheDefault().driver.exchange(nullptr));
  if (driver != nullptr) driver->ReleaseContexts();
}

CULAUNCH_INLINE Driver& Driver::Get() { return *TryGet().OrThrow(); }

CULAUNCH_INLINE std::unique_ptr<Driver> Driver::Open(const std::string& choice) {
  return TryOpen(choice).OrThrow();
}

CULAUNCH_INLINE Result<std::unique_ptr<Driver>> Driver::TryOpen(const std::string& choice) {
  // Under `culaunch emulate`, libcuda.so.1 is the emulator, which starts Python itself.
  const bool is_emulator = choice == "emulator";
  if (is_emulator && std::getenv("CULAUNCH_EMULATE_PYTHON") == nullptr) {
    return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND",
                 "CULAUNCH_DRIVER is \"emulator\", which is written in Python, and this process "
                 "has no Python with culaunch. Start the program with `culaunch emulate PROGRAM`, "
                 "run its library from Python, or unset CULAUNCH_DRIVER on a machine with a GPU");
  }
  const bool is_cuda = choice.empty() || choice == "cuda" || is_emulator;
  if (!is_cuda && choice.find_first_of("/\\") == std::string::npos) {
    return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND",
                 "CULAUNCH_DRIVER must be \"cuda\" or the path of a library that exports the CUDA "
                 "driver API (got \"" +
                     choice + "\")");
  }
  const std::string file = is_cuda ? detail::kCudaLibrary : choice;
  std::string reason;
  void* library = detail::OpenLibrary(file, &reason);
  if (library == nullptr) {
    return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND",
                 is_cuda
                     ? "no CUDA driver on this machine (" + reason +
                           "). Install NVIDIA's driver, or, in a Python process, choose the "
                           "emulator: CULAUNCH_DRIVER=emulator, or "
                           "culaunch.driver.set_driver(\"emulator\")"
                     : "the chosen driver \"" + choice + "\" cannot be loaded (" + reason +
                           "): CULAUNCH_DRIVER (set_driver in Python) must name a library "
                           "that exports the CUDA driver API; leave it out to use NVIDIA's driver");
  }
  DriverTable table;
  if (Status resolved = detail::ResolveTable(library, file, &table); !resolved) return resolved;
  const std::vector<int> own_types = {kDLCUDA, kDLCUDAManaged, kDLCUDAHost};
  return TryMake(table,
                 is_emulator ? "emulator"
                 : is_cuda   ? "cuda"
                             : file,
                 is_cuda ? own_types : detail::DeviceTypes(library));
}

CULAUNCH_INLINE Driver::Driver(const DriverTable& table, std::string name,
                               std::vector<int> device_types)
    : Driver(table, std::move(name), std::move(device_types), NotInitialised()) {
  Initialise().OrThrow();
}

CULAUNCH_INLINE Result<std::unique_ptr<Driver>> Driver::TryMake(const DriverTable& table,
                                                                std::string name,
                                                                std::vector<int> device_types) {
  std::unique_ptr<Driver> driver(
      new Driver(table, std::move(name), std::move(device_types), NotInitialised()));
  if (Status initialised = driver->Initialise(); !initialised) return initialised;
  return driver;
}

CULAUNCH_INLINE Result<std::unique_ptr<Driver>> Driver::Published() {
  const PublishedDriver* published = FindPublished();
  if (published == nullptr) return std::unique_ptr<Driver>();
  if (published->version != PublishedDriver::kVersion) {
    return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED",
                 "this library was built with a different version of culaunch's headers than the "
                 "library that chose the driver: build it again");
  }
  std::vector<int> types;
  for (const int* type = published->device_types; *type != -1; ++type) types.push_back(*type);
  Result<std::unique_ptr<Driver>> driver =
      TryMake(published->table, published->name, std::move(types));
  if (driver) (*driver)->note_array = published->note_array;
  return driver;
}

CULAUNCH_INLINE Status Driver::ChooseGraphs(const char* text) noexcept {
  GraphMode mode;
  if (!Graphs::Read(text, &mode)) {
    return Error(std::string("CULAUNCH_GRAPHS must be 0, 1 or auto (got \"") + text + "\")");
  }
  graphs.Choose(mode, *this, name_ == "cuda", version_);
  return {};
}

CULAUNCH_INLINE Status Driver::CheckDevice(int ordinal) const {
  if (ordinal < 0 || ordinal >= device_count()) {
    return Error(ErrorKind::kCall, CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE",
                 "there is no device " + detail::ToText(ordinal) + ": this machine has " +
                     detail::ToText(device_count()));
  }
  return {};
}

CULAUNCH_INLINE int Driver::Attribute(CUdevice_attribute attribute, int ordinal) const {
  int value = 0;
  Check(cuDeviceGetAttribute(&value, attribute, Device(ordinal)), "cuDeviceGetAttribute");
  return value;
}

CULAUNCH_INLINE CUresult Driver::PrimaryContext(int ordinal, CUcontext* context) noexcept {
  if (ordinal < 0 || ordinal >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  DeviceState& device = devices_[static_cast<size_t>(ordinal)];
  *context = device.context.load(std::memory_order_acquire);
  if (*context != nullptr) return CUDA_SUCCESS;
  const CUresult code = cuDevicePrimaryCtxRetain(context, device.handle);
  if (code == CUDA_SUCCESS) device.context.store(*context, std::memory_order_release);
  return code;
}

CULAUNCH_INLINE std::string Driver::ErrorName(CUresult code) const {
  const char* text = nullptr;
  return cuGetErrorName(code, &text) == CUDA_SUCCESS && text != nullptr
             ? text
             : "CUresult " + detail::ToText(static_cast<int>(code));
}

CULAUNCH_INLINE std::string Driver::Describe(CUresult code) const {
  const char* text = nullptr;
  std::string line = ErrorName(code) + " (" + detail::ToText(static_cast<int>(code)) + ")";
  if (cuGetErrorString(code, &text) == CUDA_SUCCESS && text != nullptr)
    line.append(": ").append(text);
  return line;
}

CULAUNCH_INLINE Status Driver::StatusOf(CUresult code, const std::string& what) const {
  if (code == CUDA_SUCCESS) return {};
  return Error(ErrorKind::kDriver, code, ErrorName(code), what + " failed: " + Describe(code));
}

CULAUNCH_INLINE Driver::Driver(const DriverTable& table, std::string name,
                               std::vector<int> device_types, NotInitialised)
    : DriverTable(table), name_(std::move(name)), device_types_(std::move(device_types)) {}

CULAUNCH_INLINE Status Driver::Initialise() {
  const CUresult initialised = cuInit(0);
  if (initialised != CUDA_SUCCESS) {
    return Error(
        ErrorKind::kNoDriver, initialised, ErrorName(initialised),
        "the CUDA driver \"" + name_ + "\" cannot be initialized: " + Describe(initialised));
  }
  CUresult code = cuDriverGetVersion(&version_);
  if (code != CUDA_SUCCESS) return StatusOf(code, "cuDriverGetVersion");
  if (version_ < kMinimumVersion) {
    return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED",
                 "culaunch needs a driver for CUDA 12.4 or newer (got one for CUDA " +
                     detail::ToText(version_ / 1000) + "." + detail::ToText(version_ % 1000 / 10) +
                     "): update NVIDIA's driver to 550 or newer");
  }
  int count = 0;
  code = cuDeviceGetCount(&count);
  if (code != CUDA_SUCCESS) return StatusOf(code, "cuDeviceGetCount");
  devices_ = std::vector<DeviceState>(static_cast<size_t>(count));
  for (int i = 0; i < count && code == CUDA_SUCCESS; ++i) {
    code = cuDeviceGet(&devices_[static_cast<size_t>(i)].handle, i);
  }
  if (code != CUDA_SUCCESS) return StatusOf(code, "cuDeviceGet");
  return ChooseGraphs(std::getenv("CULAUNCH_GRAPHS"));
}

CULAUNCH_INLINE void Driver::ReleaseContexts() noexcept {
  for (DeviceState& device : devices_) {
    if (device.context.exchange(nullptr) != nullptr && cuDevicePrimaryCtxRelease != nullptr) {
      cuDevicePrimaryCtxRelease(device.handle);
    }
  }
}

CULAUNCH_INLINE std::string Driver::Choice() {
  const char* variable = std::getenv("CULAUNCH_DRIVER");
  return variable != nullptr ? variable : "";
}

CULAUNCH_INLINE const PublishedDriver* Driver::FindPublished() noexcept {
  const char* text = std::getenv(kPublishedVariable);
  long process = 0;
  unsigned long long address = 0;
  if (text == nullptr || std::sscanf(text, "%ld:%llx", &process, &address) != 2 ||
      process != detail::ProcessId()) {
    return nullptr;
  }
  return reinterpret_cast<const PublishedDriver*>(static_cast<uintptr_t>(address));
}

CULAUNCH_INLINE Result<std::unique_ptr<Driver>> Driver::Choose() {
  const std::string choice = Choice();
  if (choice == "emulator" && IsPublished()) return Published();
  return TryOpen(choice);
}

CULAUNCH_NAMESPACE_END
