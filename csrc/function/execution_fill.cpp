// Filling memory.
#include <culaunch/guard.h>

#include <cstring>

#include "driver/errors.h"
#include "function/execution.h"
#include "function/problems.h"

namespace function {

bool Execution::CheckFill(const Effect& effect) {
  const ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  const ArrayValue& base = call_.arrays_[static_cast<size_t>(value.base)];
  const Word bytes = Int(effect.bytes);
  const auto before = static_cast<int64_t>(value.data - base.begin);
  const auto room = static_cast<int64_t>(base.bytes);
  if (bytes == 0 || (bytes > 0 && before >= 0 && before <= room && bytes <= room - before)) {
    return true;
  }
  PyErr_Format(PyExc_ValueError, "%lld bytes to fill are not inside of the array",
               static_cast<long long>(bytes));
  PrefixError(Text(effect));
  return false;
}

CUresult Execution::FillMemory(CUdeviceptr begin, Word value, size_t bytes) {
  culaunch::Driver& driver = *call_.place_.driver;
  if (bytes == 0) return CUDA_SUCCESS;
  const culaunch::DeviceGuard guard(driver, call_.place_.device.device_id);
  if (guard.code() != CUDA_SUCCESS) return guard.code();
  if (driver.note_array != nullptr && call_.place_.device.device_type == culaunch::kDLCPU) {
    // An emulated device's memory is the host's: a framework's array is none of its allocations.
    const CUresult code = driver.cuStreamSynchronize(call_.place_.stream);
    if (code == CUDA_SUCCESS)
      std::memset(reinterpret_cast<void*>(begin), static_cast<int>(value), bytes);
    return code;
  }
  return driver.cuMemsetD8Async(begin, static_cast<unsigned char>(value), bytes,
                                call_.place_.stream);
}

// Fill memory, without the GIL.
bool Execution::Zero(const Effect& effect, char* begin, Word value, size_t bytes) {
  CUresult code;
  {
    const ReleaseGil released;
    code = FillMemory(reinterpret_cast<CUdeviceptr>(begin), value, bytes);
  }
  if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
    Guarded<bool>("LaunchError", false, [&] {
      call_.place_.driver->Check(code, "filling " + std::to_string(bytes) + " bytes of memory");
      return true;
    });
    PrefixError(Text(effect));
    return false;
  }
  return true;
}

}  // namespace function
