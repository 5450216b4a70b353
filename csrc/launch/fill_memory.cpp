#include "launch/fill_memory.h"

#include <culaunch/guard.h>

#include <cstring>

CUresult FillMemory(culaunch::Driver& driver, DLDevice device, CUstream stream, const void* begin,
                    unsigned char value, size_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  const culaunch::DeviceGuard guard(driver, device.device_id);
  if (guard.code() != CUDA_SUCCESS) return guard.code();
  if (driver.note_array != nullptr && device.device_type == culaunch::kDLCPU) {
    // An emulated device's memory is the host's: a framework's array is not one of its allocations.
    const CUresult code = driver.cuStreamSynchronize(stream);
    if (code == CUDA_SUCCESS) std::memset(const_cast<void*>(begin), value, bytes);
    return code;
  }
  return driver.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(begin), value, bytes, stream);
}
