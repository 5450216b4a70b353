// Make a device's context current for a scope, and restore the previous one afterwards.
#pragma once

#include <cuda.h>

#include "driver.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Push a context, pop it at the end of the scope.
class ContextGuard {
 public:
  ContextGuard(Driver& driver, CUcontext context) noexcept
      : driver_(driver), code_(driver.cuCtxPushCurrent(context)), pushed_(code_ == CUDA_SUCCESS) {}
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;
  ~ContextGuard() {
    CUcontext popped = nullptr;
    if (pushed_) driver_.cuCtxPopCurrent(&popped);
  }

  CUresult code() const noexcept { return code_; }

 private:
  Driver& driver_;
  CUresult code_;
  bool pushed_;
};

// Make a context of a device current. If a context of that device is current already, it stays,
// because it may be the user's own. Otherwise the primary context is pushed.
class DeviceGuard {
 public:
  DeviceGuard(Driver& driver, int ordinal) noexcept : driver_(driver) {
    CUdevice current = 0;
    if (driver.cuCtxGetDevice(&current) == CUDA_SUCCESS && driver.Ordinal(current) == ordinal) {
      return;
    }
    CUcontext context = nullptr;
    code_ = driver.PrimaryContext(ordinal, &context);
    if (code_ == CUDA_SUCCESS) code_ = driver.cuCtxPushCurrent(context);
    pushed_ = code_ == CUDA_SUCCESS;
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    CUcontext popped = nullptr;
    if (pushed_) driver_.cuCtxPopCurrent(&popped);
  }

  // Whether the device is current now; a driver's code if not.
  CUresult code() const noexcept { return code_; }

 private:
  Driver& driver_;
  CUresult code_ = CUDA_SUCCESS;
  bool pushed_ = false;
};

// A current context for work with executable graphs, in a thread that has none. Driver 580.159
// (CUDA 13.0) crashes if a thread without one sets a node, whatever the parameters say.
class AnyContextGuard {
 public:
  AnyContextGuard() noexcept = default;
  AnyContextGuard(Driver& driver, int ordinal) noexcept { Enter(driver, ordinal); }
  AnyContextGuard(const AnyContextGuard&) = delete;
  AnyContextGuard& operator=(const AnyContextGuard&) = delete;
  ~AnyContextGuard() { Leave(); }

  CUresult Enter(Driver& driver, int ordinal) noexcept {
    CUcontext context = nullptr;
    if (driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) return CUDA_SUCCESS;
    CUresult code = driver.PrimaryContext(ordinal, &context);
    if (code == CUDA_SUCCESS) code = driver.cuCtxPushCurrent(context);
    if (code == CUDA_SUCCESS) pushed_ = &driver;
    return code;
  }
  void Leave() noexcept {
    if (pushed_ == nullptr) return;
    CUcontext popped = nullptr;
    pushed_->cuCtxPopCurrent(&popped);
    pushed_ = nullptr;
  }

 private:
  Driver* pushed_ = nullptr;
};

// Let this thread load a kernel while some stream is under graph capture: loading is not part of
// the capture (driver API, cuThreadExchangeStreamCaptureMode).
class RelaxedCaptureGuard {
 public:
  explicit RelaxedCaptureGuard(Driver& driver) noexcept : driver_(driver) {
    driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCaptureGuard(const RelaxedCaptureGuard&) = delete;
  RelaxedCaptureGuard& operator=(const RelaxedCaptureGuard&) = delete;
  ~RelaxedCaptureGuard() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }

 private:
  Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// The device that is current on this thread; the first one if none is, as in the runtime API.
inline int CurrentDevice(const Driver& driver) noexcept {
  CUdevice current = 0;
  return driver.cuCtxGetDevice(&current) == CUDA_SUCCESS ? driver.Ordinal(current) : 0;
}

// Find the device that a stream belongs to; for a default stream, the current one. A stream of a
// primary context is remembered.
CUresult StreamDevice(Driver& driver, CUstream stream, int* ordinal) noexcept;

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/guard.h"
#endif
