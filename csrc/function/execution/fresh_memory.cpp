#include "function/execution/fresh_memory.h"

namespace function {

bool IsAligned(const char* data) {
  constexpr uintptr_t kAlignment = 16;  // of a program's allocations
  if (!CULAUNCH_UNLIKELY(reinterpret_cast<uintptr_t>(data) % kAlignment != 0)) return true;
  PyErr_Format(PyExc_RuntimeError,
               "the framework allocated an array at %p, which is not a multiple of 16", data);
  return false;
}

bool AllocateDense(const DLPackExchangeAPI* api, DLDevice device, DLDataType type, int rank,
                   const int64_t* shape, char** data, Allocated* allocated) {
  const DLTensor like = {nullptr, device, rank, type, const_cast<int64_t*>(shape), nullptr, 0};
  *data = ::Allocate(api, like, allocated);
  return allocated->is_made() && IsAligned(*data);
}

}  // namespace function
