// The launch of a call: the parameters of its kernel, and its result.
#include <algorithm>

#include "driver/errors.h"
#include "elementwise/call.h"
#include "elementwise/parameters.h"
#include "elementwise/scalars.h"
#include "launch/kernel_type.h"
#include "launch/launch_failure.h"

namespace elementwise {

// Report the arrays that the launch may touch to the driver. Call this right before the launch:
// reading an argument may run Python, which may launch something else.
void ElementwiseCall::TellDriver() const {
  place_.driver->note_array(nullptr, 0, culaunch::kNoteLaunch);
  for (int i = 0; i < count_; ++i) NoteOperand(operands_[i], *place_.driver);
  for (size_t i = 0; i < special_->outputs.size(); ++i) NoteOperand(outputs_[i], *place_.driver);
}

bool ElementwiseCall::Launch(const CompiledLayout& compiled, const LayoutKey& key) {
  const KernelObject& kernel = *compiled.kernel;
  ParameterWriter writer(kernel);
  const size_t outputs = special_->outputs.size();
  for (size_t i = 0; i < outputs; ++i) writer.Put(problem_.views[i].data);
  size_t mapped = outputs;
  for (int i = 0; i < count_; ++i) {
    const uint8_t role = special_->roles[static_cast<size_t>(i)];
    if (role == 1) writer.Put(problem_.views[mapped++].data);
    if (role == 2) writer.Put(operands_[i].data);
  }
  for (const ScalarPlan& scalar : special_->scalars) {
    const size_t size = writer.NextSize();
    if (!StoreScalar(operands_[scalar.argument], scalar.number, writer.Next(size),
                     std::min<size_t>(size, 16))) {
      NameArgument(scalar.argument);
      return false;
    }
  }
  const uint64_t blocks = PutLayout(&writer, problem_, key, compiled.unroll);
  if (!writer.IsComplete()) {
    const Ref type = ErrorClass("InternalError");
    if (type) PyErr_SetString(type.get(), "a generated kernel has other parameters than its call");
    return false;
  }
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(std::min<uint64_t>(blocks, INT32_MAX));
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kBlock;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = place_.stream;
  const int ordinal = place_.device.device_id;
  culaunch::KernelState& state = *kernel.state;
  if (place_.driver->note_array != nullptr) TellDriver();
  CUresult code;
  {
    const ReleaseGil released;
    code = state.Launch(config, ordinal, writer.pointers());
  }
  if (code == CUDA_SUCCESS) return true;
  RaiseLaunchFailure(state, config, ordinal, code);
  return false;
}

}  // namespace elementwise
