// culaunch::KernelOnDevices: prepares a kernel on each device before its first launch there, and
// launches it.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "driver.h"
#include "stream_devices.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

class KernelOnDevices {
 public:
  KernelOnDevices(Driver& own_driver, CUkernel own_handle);

  Driver& driver() const noexcept { return driver_; }
  // Null once the module is unloaded.
  CUkernel handle() const noexcept { return handle_.load(std::memory_order_acquire); }
  void MarkUnloaded() noexcept;

  // Launch on a device. -1 means the stream's device, which for a default stream is the current
  // one. Its context is made current for the call if necessary. The first launch on a device makes
  // the kernel resident there.
  CUresult Launch(const CUlaunchConfig& config, int ordinal, void** arguments) noexcept {
    // The usual case is one call of the driver: the kernel is resident on the device, and it is the
    // device of the stream. The driver launches a CUfunction faster than a CUkernel, which it must
    // look up; and it refuses one that is not of the stream's context.
    const int guess = CULAUNCH_UNLIKELY(ordinal < 0) ? GuessDevice(config.hStream) : ordinal;
    const CUfunction function = Resident(config, guess);
    if (CULAUNCH_UNLIKELY(function == nullptr)) return LaunchAsking(config, ordinal, arguments);
    if (CULAUNCH_UNLIKELY(driver_.streams.HasDoubts()) && IsDefaultStream(config.hStream)) {
      return LaunchAsking(config, ordinal, arguments);
    }
    const CUresult code = driver_.cuLaunchKernelEx(&config, function, arguments, nullptr);
    if (CULAUNCH_UNLIKELY(IsRefusal(code))) {
      if (IsDefaultStream(config.hStream)) driver_.streams.Doubt();
      return LaunchAsking(config, ordinal, arguments);
    }
    return code;
  }

  // Do everything that a launch on a device does before the launch. Errors that only this machine's
  // driver can find (no code for the device, too much shared memory) are then known before anything
  // has run.
  CUresult MakeReady(const CUlaunchConfig& config, int ordinal) noexcept;

  // The maximum number of threads in a block of this kernel on a device, which depends on its
  // registers. The driver is asked once. 0: not known.
  int MaxThreads(int ordinal) noexcept;

  // Load the kernel on a device, whose context is current, and opt in to as much dynamic shared
  // memory and as large a cluster as the configuration needs.
  CUresult Prepare(CUkernel kernel, int ordinal, const CUlaunchConfig& config) noexcept;

  // Opt in to dynamic shared memory on a device; -1 is the most it has.
  CUresult AllowDynamicSharedMemory(int ordinal, int64_t bytes) noexcept;

  // The most dynamic shared memory that a block of this kernel can have on a device, opted in.
  CUresult MaxDynamicSharedMemory(int ordinal, int* bytes) noexcept;

 protected:
  // The device of a stream, if it is known without asking the driver; -1: not known.
  int GuessDevice(CUstream stream) const noexcept {
    return device_count_ == 1 ? 0 : driver_.streams.Guess(stream);
  }

  // The kernel's function in a device's primary context, if nothing is left to do there before
  // this launch.
  CUfunction Resident(const CUlaunchConfig& config, int ordinal) const noexcept {
    if (CULAUNCH_UNLIKELY(static_cast<unsigned>(ordinal) >= static_cast<unsigned>(device_count_))) {
      return nullptr;
    }
    const DeviceState& device = devices_[static_cast<size_t>(ordinal)];
    if (CULAUNCH_UNLIKELY(device.allowed_shared.load(std::memory_order_acquire) <
                          static_cast<int64_t>(config.sharedMemBytes))) {
      return nullptr;
    }
    if (CULAUNCH_UNLIKELY(config.numAttrs != 0) && ClusterBlocks(config) > kPortableCluster &&
        !device.allows_large_cluster.load(std::memory_order_acquire)) {
      return nullptr;
    }
    return device.function.load(std::memory_order_acquire);
  }

 private:
  struct DeviceState {
    // The kernel in the primary context; null before it is resident there.
    std::atomic<CUfunction> function{nullptr};
    // Dynamic shared memory that a launch may ask for; -1 before the kernel is resident.
    std::atomic<int64_t> allowed_shared{-1};
    std::atomic<bool> allows_large_cluster{false};
    std::atomic<int> max_threads{0};  // of a block; 0 before it was asked for
  };

  bool IsPrimaryCurrent(int ordinal) const noexcept;

  // The driver's result for a function from another context than the launch's, or without a
  // context.
  static bool IsRefusal(CUresult code) noexcept {
    return code == CUDA_ERROR_INVALID_HANDLE || code == CUDA_ERROR_INVALID_CONTEXT;
  }

  // Ask the driver for everything that a launch by guess skips. A launch on a stream other than a
  // default one uses the stream's own context, whatever context is current (seen with CUDA 13.0's
  // driver).
  CUresult LaunchAsking(const CUlaunchConfig& config, int ordinal, void** arguments) noexcept;

  // Launch the CUkernel, whose context is the stream's, after all that it needs there.
  CUresult LaunchPrepared(const CUlaunchConfig& config, int ordinal, void** arguments) noexcept;

  static constexpr uint64_t kPortableCluster = 8;  // programming guide, "Thread Block Clusters"

  // The blocks of the largest cluster that the configuration allows; 0 without clusters.
  static uint64_t ClusterBlocks(const CUlaunchConfig& config) noexcept {
    uint64_t most = 0;
    for (unsigned i = 0; i < config.numAttrs; ++i) {
      const CUlaunchAttribute& attribute = config.attrs[i];
      constexpr int kPreferredCluster = 11;
      if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
          static_cast<int>(attribute.id) != kPreferredCluster) {
        continue;
      }
      const auto& dims = attribute.value.clusterDim;
      const uint64_t blocks = uint64_t{dims.x} * dims.y * dims.z;
      if (blocks > most) most = blocks;
    }
    return most;
  }

  // Members that each launch reads come first.
  Driver& driver_;
  std::atomic<CUkernel> handle_;
  std::unique_ptr<DeviceState[]> devices_;
  int device_count_;
};

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/kernel_on_devices.h"
#endif
