#include "triton/dispatchers/zeroes.h"

#include <array>

#include "arguments/torch/tensor.h"
#include "arguments/torch/tensor_versions.h"
#include "arguments/types/type_table.h"
#include "arguments/views/array_view.h"
#include "driver/errors.h"
#include "launch/fill_memory.h"

namespace triton {

namespace {

bool FindMemory(PyObject* object, DLDevice device, Extent* memory) {
  TypeEntry scratch;
  const TypeEntry* entry = object != nullptr ? LookUpType(Py_TYPE(object), &scratch) : nullptr;
  if (entry == nullptr || entry->kind != ArgumentKind::kExchange || !entry->is_torch ||
      entry->says_otherwise) {
    return false;
  }
  DLTensor tensor;
  if (ReadTensor(entry->api, object, &tensor) != TensorRead::kDone) return false;
  if (MayRequireGrad(entry->api, object) && MayBeFollowed(object) != 0) return false;
  if (tensor.device.device_type != device.device_type ||
      tensor.device.device_id != device.device_id ||
      !IsContiguous(tensor.shape, tensor.strides, tensor.ndim)) {
    return false;
  }
  *memory = ExtentOf(tensor);
  return true;
}

}  // namespace

Zeroing SetToZero(const State& state, const ArgumentsOfCall& arguments, int ordinal,
                  CUstream stream) {
  if (!AreVersionsOpen()) return Zeroing::kLeft;  // the general path opens them
  const DLDevice device = {state.device_type, ordinal};
  std::array<Extent, State::kMostZeroes> memory;
  size_t count = 0;
  // Check all of them before setting one.
  for (const size_t parameter : state.zeroes) {
    if (count == memory.size() || !FindMemory(arguments[parameter], device, &memory[count++])) {
      PyErr_Clear();  // the general path reads it again, and reports the problem
      return Zeroing::kLeft;
    }
  }
  CUresult code = CUDA_SUCCESS;
  {
    const ReleaseGil released;
    for (size_t i = 0; i < count && code == CUDA_SUCCESS; ++i) {
      code = FillMemory(*state.table, device, stream, memory[i].begin, 0, memory[i].bytes);
    }
  }
  if (!CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
    for (const size_t parameter : state.zeroes) {
      if (!CountTensor(arguments[parameter])) return Zeroing::kFailed;
    }
    return Zeroing::kDone;
  }
  return Guarded<Zeroing>("LaunchError", Zeroing::kFailed, [&] {
    state.table->Check(code, "setting arguments to zero before a launch");
    return Zeroing::kFailed;
  });
}

}  // namespace triton
