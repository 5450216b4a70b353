// What kernel_on_devices.h declares: a kernel made ready on a device, and a launch that asks the
// driver.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "../driver.h"
#include "../guard.h"
#include "../kernel_on_devices.h"
#include "../stream_devices.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

CULAUNCH_INLINE KernelOnDevices::KernelOnDevices(Driver& own_driver, CUkernel own_handle)
    : driver_(own_driver),
      handle_(own_handle),
      devices_(own_driver.device_count() == 0 ? nullptr
                                              : std::make_unique<DeviceState[]>(static_cast<size_t>(
                                                    own_driver.device_count()))),
      device_count_(own_driver.device_count()) {}

CULAUNCH_INLINE void KernelOnDevices::MarkUnloaded() noexcept {
  handle_.store(nullptr, std::memory_order_release);
  for (int i = 0; i < device_count_; ++i) {
    devices_[static_cast<size_t>(i)].function.store(nullptr, std::memory_order_release);
  }
}

CULAUNCH_INLINE CUresult KernelOnDevices::MakeReady(const CUlaunchConfig& config,
                                                    int ordinal) noexcept {
  if (ordinal < 0 || ordinal >= device_count_) return CUDA_ERROR_INVALID_DEVICE;
  if (Resident(config, ordinal) != nullptr) return CUDA_SUCCESS;
  const CUkernel kernel = handle();
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const DeviceGuard guard(driver_, ordinal);
  return guard.code() != CUDA_SUCCESS ? guard.code() : Prepare(kernel, ordinal, config);
}

CULAUNCH_INLINE int KernelOnDevices::MaxThreads(int ordinal) noexcept {
  if (ordinal < 0 || ordinal >= device_count_) return 0;
  std::atomic<int>& known = devices_[static_cast<size_t>(ordinal)].max_threads;
  int most = known.load(std::memory_order_relaxed);
  const CUkernel kernel = handle();
  if (most == 0 && kernel != nullptr &&
      driver_.cuKernelGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel,
                                   driver_.Handle(ordinal)) == CUDA_SUCCESS) {
    known.store(most, std::memory_order_relaxed);
  }
  return most;
}

CULAUNCH_INLINE CUresult KernelOnDevices::Prepare(CUkernel kernel, int ordinal,
                                                  const CUlaunchConfig& config) noexcept {
  DeviceState& device = devices_[static_cast<size_t>(ordinal)];
  const CUdevice handle = driver_.Handle(ordinal);
  CUresult code = CUDA_SUCCESS;
  int64_t allowed = device.allowed_shared.load(std::memory_order_acquire);
  // Contexts of the user's own are not remembered: loading a kernel again costs little.
  const bool is_primary = IsPrimaryCurrent(ordinal);
  if (allowed < 0 || !is_primary || device.function.load(std::memory_order_acquire) == nullptr) {
    const RelaxedCaptureGuard relaxed(driver_);
    CUfunction function = nullptr;
    int initial = 0;
    code = driver_.cuKernelGetFunction(&function, kernel);
    if (code == CUDA_SUCCESS) code = driver_.cuFuncLoad(function);
    if (code == CUDA_SUCCESS) {
      code = driver_.cuKernelGetAttribute(&initial, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          kernel, handle);
    }
    if (code != CUDA_SUCCESS) return code;
    allowed = initial;
    device.allowed_shared.store(allowed, std::memory_order_release);
    if (is_primary) device.function.store(function, std::memory_order_release);
  }
  if (allowed < static_cast<int64_t>(config.sharedMemBytes)) {
    int largest = 0;
    code = MaxDynamicSharedMemory(ordinal, &largest);
    if (code != CUDA_SUCCESS) return code;
    if (static_cast<int64_t>(config.sharedMemBytes) > largest) return CUDA_ERROR_INVALID_VALUE;
    code = AllowDynamicSharedMemory(ordinal, largest);
    if (code != CUDA_SUCCESS) return code;
  }
  if (ClusterBlocks(config) > kPortableCluster &&
      !device.allows_large_cluster.load(std::memory_order_acquire)) {
    code = driver_.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
                                        kernel, handle);
    if (code == CUDA_SUCCESS) device.allows_large_cluster.store(true, std::memory_order_release);
  }
  return code;
}

CULAUNCH_INLINE CUresult KernelOnDevices::AllowDynamicSharedMemory(int ordinal,
                                                                   int64_t bytes) noexcept {
  int largest = 0;
  const CUresult code = MaxDynamicSharedMemory(ordinal, &largest);
  if (code != CUDA_SUCCESS) return code;
  if (bytes > largest || bytes < -1) return CUDA_ERROR_INVALID_VALUE;
  const int allowed = bytes < 0 ? largest : static_cast<int>(bytes);
  const CUresult set = driver_.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                    allowed, handle(), driver_.Handle(ordinal));
  // A launch that needs more than this must opt in again. Before the first launch there the
  // driver is asked.
  std::atomic<int64_t>& known = devices_[static_cast<size_t>(ordinal)].allowed_shared;
  if (set == CUDA_SUCCESS && known.load(std::memory_order_acquire) >= 0) {
    known.store(allowed, std::memory_order_release);
  }
  return set;
}

CULAUNCH_INLINE CUresult KernelOnDevices::MaxDynamicSharedMemory(int ordinal, int* bytes) noexcept {
  int opt_in = 0;
  int fixed = 0;
  const CUdevice handle = driver_.Handle(ordinal);
  CUresult code = driver_.cuDeviceGetAttribute(
      &opt_in, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, handle);
  if (code == CUDA_SUCCESS) {
    code = driver_.cuKernelGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, this->handle(),
                                        handle);
  }
  *bytes = opt_in - fixed;
  return code;
}

CULAUNCH_INLINE bool KernelOnDevices::IsPrimaryCurrent(int ordinal) const noexcept {
  CUcontext current = nullptr;
  CUcontext primary = nullptr;
  return driver_.PrimaryContext(ordinal, &primary) == CUDA_SUCCESS &&
         driver_.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == primary;
}

CULAUNCH_INLINE CUresult KernelOnDevices::LaunchAsking(const CUlaunchConfig& config, int ordinal,
                                                       void** arguments) noexcept {
  if (handle() == nullptr) return CUDA_ERROR_INVALID_HANDLE;  // the module is gone
  int resident_on = -1;
  if (IsDefaultStream(config.hStream)) {
    CUcontext current = nullptr;
    if (driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS) current = nullptr;
    const int primary = current != nullptr ? driver_.PrimaryOrdinal(current) : -1;
    if (primary >= 0 && (ordinal < 0 || ordinal == primary)) {
      resident_on = ordinal = primary;
      driver_.streams.Remember(config.hStream, primary);
      if (driver_.streams.HasDoubts()) driver_.streams.Confirm();
    }
  } else if (ordinal < 0) {
    const CUresult code = StreamDevice(driver_, config.hStream, &ordinal);
    if (code != CUDA_SUCCESS) return code;
    if (driver_.streams.Guess(config.hStream) == ordinal) resident_on = ordinal;
  }
  const CUfunction function = Resident(config, resident_on);
  if (function == nullptr) return LaunchPrepared(config, ordinal, arguments);
  const CUresult code = driver_.cuLaunchKernelEx(&config, function, arguments, nullptr);
  return IsRefusal(code) ? LaunchPrepared(config, ordinal, arguments) : code;
}

CULAUNCH_INLINE CUresult KernelOnDevices::LaunchPrepared(const CUlaunchConfig& config, int ordinal,
                                                         void** arguments) noexcept {
  if (ordinal < 0) ordinal = CurrentDevice(driver_);
  if (ordinal < 0 || ordinal >= device_count_) return CUDA_ERROR_INVALID_DEVICE;
  const CUkernel kernel = handle();
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const DeviceGuard guard(driver_, ordinal);
  CUresult code = guard.code();
  if (code == CUDA_SUCCESS) code = Prepare(kernel, ordinal, config);
  if (code != CUDA_SUCCESS) return code;
  return driver_.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), arguments,
                                  nullptr);
}

CULAUNCH_NAMESPACE_END
