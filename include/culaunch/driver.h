// culaunch::Driver: a driver table in use, its devices and their primary contexts.
#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "driver_table.h"
#include "error.h"
#include "graphs.h"
#include "lock.h"
#include "stream_devices.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Immutable after construction, except for the contexts, which are retained at first use. Never
// destroyed while modules that were loaded through it live.
class Driver : public DriverTable {
 public:
  // cuKernelGetParamInfo, cuLibraryEnumerateKernels and cuFuncLoad are new in CUDA 12.4.
  static constexpr int kMinimumVersion = 12040;

  // The process's default driver (of this copy of culaunch), by the environment variable
  // CULAUNCH_DRIVER: the emulator that was published in this process, the library that it names,
  // libcuda without it. Resolved at first use; a failure is thrown, and tried again by the next
  // call.
  static Driver& Get();

  // The same for programs without exceptions. Never null if it is ok.
  static Result<Driver*> TryGet();

  // Release the resources of the process's default driver. For a library that is about to be
  // unloaded (see UnloadLibrary), when nothing more is done by this copy of culaunch.
  static void CloseDefault() noexcept;

  // Open the driver in a shared library: "" and "cuda" are the system's libcuda, a path is
  // another library that exports the driver API.
  static Result<std::unique_ptr<Driver>> TryOpen(const std::string& choice);
  static std::unique_ptr<Driver> Open(const std::string& choice);

  // A driver without functions and devices, for empty handles.
  static Driver& None() noexcept;

  // device_types: DLPack's device types that are this driver's memory, its own first.
  Driver(const DriverTable& table, std::string name, std::vector<int> device_types);

  static Result<std::unique_ptr<Driver>> TryMake(const DriverTable& table, std::string name,
                                                 std::vector<int> device_types);

  // The driver that another copy of culaunch published for this process, if any. Two libraries
  // share no symbol, so the address travels in the environment, together with the process that it
  // is valid for.
  static Result<std::unique_ptr<Driver>> Published();

  static constexpr const char* kPublishedVariable = "CULAUNCH_DRIVER_TABLE";

  // Reports an array, its address and its size in bytes, to a driver that checks addresses, before
  // the launch that uses it (see Note). Null for libcuda.
  NoteArrayFunction note_array = nullptr;

  // The process's default driver if arrays must be reported to it; else null, at the cost of a
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
  Status ChooseGraphs(const char* text) noexcept;

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

  Status CheckDevice(int ordinal) const;

  // The ordinal of a device's handle.
  int Ordinal(CUdevice handle) const noexcept {
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].handle == handle) return static_cast<int>(i);
    }
    return -1;
  }

  int Attribute(CUdevice_attribute attribute, int ordinal) const;

  // The device's primary context, retained at first use and kept: the one that every framework
  // shares (driver API, "Primary Context Management").
  CUresult PrimaryContext(int ordinal, CUcontext* context) noexcept;

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

  std::string ErrorName(CUresult code) const;

  // "CUDA_ERROR_INVALID_VALUE (1): invalid argument"
  std::string Describe(CUresult code) const;

  // An error when a driver call failed; `what` names the operation.
  Status StatusOf(CUresult code, const std::string& what) const;
  void Check(CUresult code, const std::string& what) const {
    if (code != CUDA_SUCCESS) StatusOf(code, what).OrThrow();
  }

 private:
  struct DeviceState {
    CUdevice handle = 0;
    std::atomic<CUcontext> context{nullptr};
  };

  struct NotInitialised {};

  Driver(const DriverTable& table, std::string name, std::vector<int> device_types, NotInitialised);
  Status Initialise();
  void ReleaseContexts() noexcept;

  struct Default;
  static inline Default& TheDefault() noexcept;  // where it is used: impl/driver.h

  // Known once the default driver is.
  static std::atomic<bool>& TakesNoNotes() noexcept {
    static std::atomic<bool> takes_none{false};
    return takes_none;
  }

  static std::string Choice();
  static const PublishedDriver* FindPublished() noexcept;
  static bool IsPublished() noexcept { return FindPublished() != nullptr; }
  static Result<std::unique_ptr<Driver>> Choose();

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

#if CULAUNCH_HEADER_ONLY
#include "impl/driver.h"
#endif
