// What guard.h declares.
#pragma once

#include <cuda.h>

#include "../driver.h"
#include "../guard.h"
#include "../stream_devices.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

CULAUNCH_INLINE CUresult StreamDevice(Driver& driver, CUstream stream, int* ordinal) noexcept {
  if (IsDefaultStream(stream)) {
    *ordinal = CurrentDevice(driver);
    return CUDA_SUCCESS;
  }
  CUcontext context = nullptr;
  CUcontext current = nullptr;
  CUresult code = driver.cuStreamGetCtx(stream, &context);
  if (code != CUDA_SUCCESS) return code;
  CUdevice device = 0;
  if (driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context) {
    code = driver.cuCtxGetDevice(&device);
  } else {
    const ContextGuard guard(driver, context);
    code = guard.code() == CUDA_SUCCESS ? driver.cuCtxGetDevice(&device) : guard.code();
  }
  *ordinal = code == CUDA_SUCCESS ? driver.Ordinal(device) : -1;
  if (*ordinal >= 0 && driver.HoldsContext(*ordinal, context)) {
    driver.streams.Remember(stream, *ordinal);
  }
  return code;
}

CULAUNCH_NAMESPACE_END
