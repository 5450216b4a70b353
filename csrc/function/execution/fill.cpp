// Filling memory.
#include "driver/errors.h"
#include "function/execution/execution.h"
#include "function/program/problems.h"
#include "launch/fill_memory.h"

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
  PyErr_Format(PyExc_ValueError, "%lld bytes to fill are not inside the array",
               static_cast<long long>(bytes));
  PrefixError(Text(effect));
  return false;
}

// Fill memory, without the GIL.
bool Execution::Zero(const Effect& effect, char* begin, Word value, size_t bytes) {
  CUresult code;
  {
    const ReleaseGil released;
    code = FillMemory(*call_.place_.driver, call_.place_.device, call_.place_.stream, begin,
                      static_cast<unsigned char>(value), bytes);
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
