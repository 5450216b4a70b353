// culaunch::Driver: a driver table in use, its devices and their primary contexts.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver_table.h"
#include "emulator.h"
#include "error.h"
#include "graphs.h"
#include "lock.h"
#include "shared_library.h"
#include "stream_devices.h"
#include "text.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Immutable after construction, except for the contexts, which are retained at first use. Never
// destroyed while modules that were loaded through it live.
class Driver : public DriverTable {
 public:
  // cuKernelGetParamInfo, cuLibraryEnumerateKernels and cuFuncLoad are of CUDA 12.4.
  static constexpr int kMinimumVersion = 12040;

  // The process's default driver (of this copy of culaunch), by the environment variable
  // CULAUNCH_DRIVER: the emulator that was published in this process, the library that it names,
  // libcuda without it. Resolved at first use; a failure is thrown, and tried again by the next
  // call.
  static Driver& Get() { return *TryGet().OrThrow(); }

  // The same for programs without exceptions. Never null where it is ok.
  static Result<Driver*> TryGet() {
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

  // Give back what the process's default driver holds. For a library that is about to be unloaded
  // (see UnloadLibrary), when nothing more is done by this copy of culaunch.
  static void CloseDefault() noexcept {
    TakesNoNotes().store(false, std::memory_order_relaxed);
    const std::unique_ptr<Driver> driver(TheDefault().driver.exchange(nullptr));
    if (driver != nullptr) driver->ReleaseContexts();
  }

  // Open the driver in a shared library: "" and "cuda" are the system's libcuda, a path is
  // another library that exports the driver API.
  static Result<std::unique_ptr<Driver>> TryOpen(const std::string& choice) {
    const bool is_cuda = choice.empty() || choice == "cuda";
    if (choice == "emulator") {
      return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND",
                   "CULAUNCH_DRIVER is \"emulator\", which is written in Python, and this process "
                   "has no Python with culaunch. Run the program's library from Python, or unset "
                   "CULAUNCH_DRIVER on a machine with a GPU");
    }
    if (!is_cuda && choice.find_first_of("/\\") == std::string::npos) {
      return Error(
          ErrorKind::kNoDriver, CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND",
          "CULAUNCH_DRIVER must be \"cuda\" or the path of a library that exports the CUDA "
          "driver API (got \"" +
              choice + "\")");
    }
    const std::string file = is_cuda ? detail::kCudaLibrary : choice;
    std::string reason;
    void* library = detail::OpenLibrary(file, &reason);
    if (library == nullptr) {
      return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND",
                   is_cuda ? "no CUDA driver on this machine (" + reason +
                                 "). Install NVIDIA's driver, or, in a Python process, choose the "
                                 "emulator: CULAUNCH_DRIVER=emulator, or "
                                 "culaunch.set_driver(\"emulator\")"
                           : "the chosen driver \"" + choice + "\" cannot be loaded (" + reason +
                                 "): CULAUNCH_DRIVER (set_driver in Python) must name a library "
                                 "that exports the CUDA driver API; leave it out for NVIDIA's");
    }
    DriverTable table;
    if (Status resolved = detail::ResolveTable(library, file, &table); !resolved) return resolved;
    const std::vector<int> own_types = {kDLCUDA, kDLCUDAManaged, kDLCUDAHost};
    return TryMake(table, is_cuda ? "cuda" : file,
                   is_cuda ? own_types : detail::DeviceTypes(library));
  }
  static std::unique_ptr<Driver> Open(const std::string& choice) {
    return TryOpen(choice).OrThrow();
  }

  // device_types: DLPack's device types that are this driver's memory, its own first.
  Driver(const DriverTable& table, std::string name, std::vector<int> device_types)
      : Driver(table, std::move(name), std::move(device_types), NotInitialised()) {
    Initialise().OrThrow();
  }

  static Result<std::unique_ptr<Driver>> TryMake(const DriverTable& table, std::string name,
                                                 std::vector<int> device_types) {
    std::unique_ptr<Driver> driver(
        new Driver(table, std::move(name), std::move(device_types), NotInitialised()));
    if (Status initialised = driver->Initialise(); !initialised) return initialised;
    return driver;
  }

  // The driver that another copy of culaunch published for this process, if any. Two libraries
  // share no symbol, so the address travels in the environment, together with the process that it
  // is valid for.
  static Result<std::unique_ptr<Driver>> Published() {
    const PublishedDriver* published = FindPublished();
    if (published == nullptr) return std::unique_ptr<Driver>();
    if (published->version != PublishedDriver::kVersion) {
      return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED",
                   "this library was built with another version of culaunch's header than the one "
                   "that chose the driver: build it again");
    }
    std::vector<int> types;
    for (const int* type = published->device_types; *type != -1; ++type) types.push_back(*type);
    Result<std::unique_ptr<Driver>> driver =
        TryMake(published->table, published->name, std::move(types));
    if (driver) (*driver)->note_array = published->note_array;
    return driver;
  }

  static constexpr const char* kPublishedVariable = "CULAUNCH_DRIVER_TABLE";

  // A driver that checks addresses is told of each array before the launch that uses it: its
  // address and its size in bytes (Note has the rest). Null for libcuda.
  NoteArrayFunction note_array = nullptr;

  // The process's default driver where it is to be told of arrays; else null, at the cost of a
  // load.
  static Driver* ThatTakesNotes() {
    if (!CULAUNCH_UNLIKELY(!TakesNoNotes().load(std::memory_order_relaxed))) return nullptr;
    Driver& driver = Get();
    return driver.note_array != nullptr ? &driver : nullptr;
  }

  // On which device each stream was last seen: launches guess by it.
  StreamDevices streams;

  // Whether launches go as graphs, and those that there are.
  Graphs graphs;

  // Choose again: "0", "1" or "auto", like CULAUNCH_GRAPHS. Existing graphs stay until
  // Graphs::Drop(nullptr).
  Status ChooseGraphs(const char* text) noexcept {
    GraphMode mode;
    if (!Graphs::Read(text, &mode)) {
      return Error(std::string("CULAUNCH_GRAPHS must be 0, 1 or auto (got \"") + text + "\")");
    }
    graphs.Choose(mode, *this, name_ == "cuda", version_);
    return {};
  }

  // Whether memory of one of DLPack's device types can be given to this driver's kernels.
  bool IsDeviceMemory(int device_type) const noexcept {
    for (const int type : device_types_) {
      if (type == device_type) return true;
    }
    return false;
  }

  const std::string& name() const noexcept { return name_; }
  int version() const noexcept { return version_; }
  int device_count() const noexcept { return static_cast<int>(devices_.size()); }
  const std::vector<int>& device_types() const noexcept { return device_types_; }

  // The handle of a device whose ordinal is known to be good.
  CUdevice Handle(int ordinal) const noexcept {
    return devices_[static_cast<size_t>(ordinal)].handle;
  }

  CUdevice Device(int ordinal) const {
    CheckDevice(ordinal).OrThrow();
    return Handle(ordinal);
  }

  Status CheckDevice(int ordinal) const {
    if (ordinal < 0 || ordinal >= device_count()) {
      return Error(ErrorKind::kCall, CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE",
                   "there is no device " + detail::ToText(ordinal) + ": this machine has " +
                       detail::ToText(device_count()));
    }
    return {};
  }

  // The ordinal of a device's handle.
  int Ordinal(CUdevice handle) const noexcept {
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].handle == handle) return static_cast<int>(i);
    }
    return -1;
  }

  int Attribute(CUdevice_attribute attribute, int ordinal) const {
    int value = 0;
    Check(cuDeviceGetAttribute(&value, attribute, Device(ordinal)), "cuDeviceGetAttribute");
    return value;
  }

  // The device's primary context, retained at first use and kept: the one that every framework
  // shares (driver API, "Primary Context Management").
  CUresult PrimaryContext(int ordinal, CUcontext* context) noexcept {
    if (ordinal < 0 || ordinal >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
    DeviceState& device = devices_[static_cast<size_t>(ordinal)];
    *context = device.context.load(std::memory_order_acquire);
    if (*context != nullptr) return CUDA_SUCCESS;
    const CUresult code = cuDevicePrimaryCtxRetain(context, device.handle);
    if (code == CUDA_SUCCESS) device.context.store(*context, std::memory_order_release);
    return code;
  }

  // Whether a context is a device's primary one, as far as it is retained here.
  bool HoldsContext(int ordinal, CUcontext context) const noexcept {
    return ordinal < device_count() && devices_[static_cast<size_t>(ordinal)].context.load(
                                           std::memory_order_acquire) == context;
  }

  // The device whose primary context this is; -1 for any other context.
  int PrimaryOrdinal(CUcontext context) const noexcept {
    for (int i = 0; i < device_count(); ++i) {
      if (HoldsContext(i, context)) return i;
    }
    return -1;
  }

  std::string ErrorName(CUresult code) const {
    const char* text = nullptr;
    return cuGetErrorName(code, &text) == CUDA_SUCCESS && text != nullptr
               ? text
               : "CUresult " + detail::ToText(static_cast<int>(code));
  }

  // "CUDA_ERROR_INVALID_VALUE (1): invalid argument"
  std::string Describe(CUresult code) const {
    const char* text = nullptr;
    std::string line = ErrorName(code) + " (" + detail::ToText(static_cast<int>(code)) + ")";
    if (cuGetErrorString(code, &text) == CUDA_SUCCESS && text != nullptr)
      line.append(": ").append(text);
    return line;
  }

  // An error when a driver call failed; `what` says what was tried.
  Status StatusOf(CUresult code, const std::string& what) const {
    if (code == CUDA_SUCCESS) return {};
    return Error(ErrorKind::kDriver, code, ErrorName(code), what + " failed: " + Describe(code));
  }
  void Check(CUresult code, const std::string& what) const {
    if (code != CUDA_SUCCESS) StatusOf(code, what).OrThrow();
  }

 private:
  struct DeviceState {
    CUdevice handle = 0;
    std::atomic<CUcontext> context{nullptr};
  };

  struct NotInitialised {};

  Driver(const DriverTable& table, std::string name, std::vector<int> device_types, NotInitialised)
      : DriverTable(table), name_(std::move(name)), device_types_(std::move(device_types)) {}

  Status Initialise() {
    const CUresult initialised = cuInit(0);
    if (initialised != CUDA_SUCCESS) {
      return Error(
          ErrorKind::kNoDriver, initialised, ErrorName(initialised),
          "the CUDA driver \"" + name_ + "\" cannot be initialised: " + Describe(initialised));
    }
    CUresult code = cuDriverGetVersion(&version_);
    if (code != CUDA_SUCCESS) return StatusOf(code, "cuDriverGetVersion");
    if (version_ < kMinimumVersion) {
      return Error(ErrorKind::kNoDriver, CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED",
                   "culaunch needs a driver for CUDA 12.4 or newer (got one for CUDA " +
                       detail::ToText(version_ / 1000) + "." +
                       detail::ToText(version_ % 1000 / 10) +
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

  void ReleaseContexts() noexcept {
    for (DeviceState& device : devices_) {
      if (device.context.exchange(nullptr) != nullptr && cuDevicePrimaryCtxRelease != nullptr) {
        cuDevicePrimaryCtxRelease(device.handle);
      }
    }
  }

  struct Default {
    Mutex mutex;
    std::atomic<Driver*> driver{nullptr};
  };
  static Default& TheDefault() noexcept {
    static Default instance;
    return instance;
  }

  // Known once the default driver is.
  static std::atomic<bool>& TakesNoNotes() noexcept {
    static std::atomic<bool> takes_none{false};
    return takes_none;
  }

  static std::string Choice() {
    const char* variable = std::getenv("CULAUNCH_DRIVER");
    return variable != nullptr ? variable : "";
  }

  static const PublishedDriver* FindPublished() noexcept {
    const char* text = std::getenv(kPublishedVariable);
    long process = 0;
    unsigned long long address = 0;
    if (text == nullptr || std::sscanf(text, "%ld:%llx", &process, &address) != 2 ||
        process != detail::ProcessId()) {
      return nullptr;
    }
    return reinterpret_cast<const PublishedDriver*>(static_cast<uintptr_t>(address));
  }
  static bool IsPublished() noexcept { return FindPublished() != nullptr; }

  static Result<std::unique_ptr<Driver>> Choose() {
    const std::string choice = Choice();
    if (choice == "emulator" && IsPublished()) return Published();
    return TryOpen(choice);
  }

  std::string name_;
  std::vector<int> device_types_;
  int version_ = 0;
  std::vector<DeviceState> devices_;
};

// Tell the emulator of an array that this thread's next launch gets only by its address, for
// example from data_ptr() of a tensor. The emulator treats every unknown address as a mistake. The
// driver of a GPU does not need this, and the call is a no-op.
inline void NoteArray(const void* begin, size_t bytes, Driver& driver = Driver::Get()) {
  if (driver.note_array != nullptr) driver.note_array(begin, bytes, kNoteArray);
}

CULAUNCH_NAMESPACE_END
