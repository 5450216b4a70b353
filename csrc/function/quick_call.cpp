#include "function/quick_call.h"

#include "arguments/torch_modes.h"
#include "arguments/torch_tensor.h"
#include "function/gather.h"
#include "function/problems.h"
#include "function/replay.h"
#include "launch/launch_failure.h"
#include "python/numbers.h"

namespace function {

namespace {

// The arguments, compared with those of the last call while they are read.
class QuickCall {
 public:
  QuickCall(const Kind& kind, const Program& program, const Replay& replay)
      : kind_(kind), program_(program), replay_(replay) {}

  // False: something is different.
  bool Read(PyObject* const* args);

  // Set the stream; -1 with a Python error set, 0 where the call is not for this device.
  int FindStream(int device_type);

  // Without the GIL. The step that failed; null: none.
  const ReplayStep* Launch(CUlaunchConfig* config, CUresult* code);

  int ordinal() const { return device_.device_id; }
  PyObject* object(int32_t array) const { return objects_[array]; }

 private:
  bool ReadTensor(const Step& step, PyObject* object);
  bool HasInput(int32_t input, Word value) const {
    return input < 0 || replay_.inputs()[input] == value;
  }

  const Kind& kind_;
  const Program& program_;
  const Replay& replay_;
  const TypeEntry* entry_ = nullptr;
  size_t arrays_ = 0;
  DLDevice device_ = {0, 0};
  CUstream stream_ = nullptr;
  const char* addresses_[Replay::kQuickArrays];
  PyObject* objects_[Replay::kQuickArrays];
};

inline bool QuickCall::ReadTensor(const Step& step, PyObject* object) {
  const TypeEntry* entry = step.entry.load(std::memory_order_acquire);
  DLTensor tensor;
  if (CULAUNCH_UNLIKELY(entry == nullptr) || CULAUNCH_UNLIKELY(entry->type != Py_TYPE(object)) ||
      CULAUNCH_UNLIKELY(entry->api != g_torch_layout.api) ||
      CULAUNCH_UNLIKELY(!ReadInPlace(g_torch_layout, object, &tensor))) {
    return false;
  }
  if (arrays_ == 0) {
    entry_ = entry;
    device_ = tensor.device;
  }
  // Tensors that may require grad are asked by the general way.
  const int differs = static_cast<int>(PackType(tensor.dtype) != step.type) |
                      static_cast<int>(tensor.ndim != step.rank) |
                      static_cast<int>(step.is_read_only) |
                      (tensor.device.device_type ^ device_.device_type) |
                      (tensor.device.device_id ^ device_.device_id) |
                      static_cast<int>(MayRequireGrad(entry->api, object));
  if (CULAUNCH_UNLIKELY(differs != 0)) return false;
  const ArgumentArray& array = program_.of_arrays[arrays_];
  for (uint32_t i = array.first_input; i < array.end_input; ++i) {
    const Word value =
        InputOf(program_.inputs[i], tensor.data, tensor.shape, tensor.strides, tensor.ndim);
    if (CULAUNCH_UNLIKELY(value != replay_.inputs()[i])) return false;
  }
  addresses_[arrays_] = static_cast<const char*>(tensor.data);
  objects_[arrays_++] = object;
  return true;
}

inline bool QuickCall::Read(PyObject* const* args) {
  const int32_t* input = program_.number_inputs;
  for (const Step& step : kind_.steps) {
    PyObject* object = *args++;
    bool is_same = false;
    if (step.code == Step::kArray) {
      is_same = ReadTensor(step, object);
    } else if (step.code == Step::kInt) {
      int64_t value;
      is_same =
          PyLong_CheckExact(object) && ReadSmallInt(object, &value) && HasInput(*input, value);
    } else if (step.code == Step::kFloat) {
      is_same = PyFloat_CheckExact(object) && HasInput(*input, FromFloat(ReadFloat(object)));
    } else if (step.code == Step::kNone) {
      is_same = object == Py_None;
    } else if (step.code == Step::kStatic) {
      is_same = object == step.value.get();
    }
    if (CULAUNCH_UNLIKELY(!is_same)) return false;
    ++input;
  }
  return arrays_ != 0 && HasInput(program_.device_input, device_.device_id);
}

inline int QuickCall::FindStream(int device_type) {
  if (CULAUNCH_UNLIKELY(device_.device_type != device_type)) return 0;
  if (device_.device_type == culaunch::kDLCPU) return 1;
  void* stream = nullptr;
  if (CULAUNCH_UNLIKELY(
          entry_->api->current_work_stream(device_.device_type, device_.device_id, &stream) != 0)) {
    return -1;
  }
  stream_ = static_cast<CUstream>(stream);
  return 1;
}

inline const ReplayStep* QuickCall::Launch(CUlaunchConfig* config, CUresult* code) {
  for (const ReplayStep* step = replay_.begin(); step->code == EffectCode::kLaunch; ++step) {
    *code = step->launch->Launch(device_.device_id, stream_, config,
                                 [this](int32_t array) { return &addresses_[array]; });
    if (CULAUNCH_UNLIKELY(*code != CUDA_SUCCESS)) return step;
  }
  return nullptr;
}

}  // namespace

bool CallQuickly(State& state, PyObject* const* args, PyObject** result) {
#ifdef Py_GIL_DISABLED
  // What is read here may be replaced meanwhile: the general way takes the locks.
  return false;
#else
  const Kind* kind = state.last.load(std::memory_order_relaxed);
  if (CULAUNCH_UNLIKELY(kind == nullptr) || CULAUNCH_UNLIKELY(kind->program == nullptr)) {
    return false;
  }
  const Program& program = *kind->program->program;  // until the GIL is released
  Replay* replay = program.replay;
  const Watch* watch = state.watch.load(std::memory_order_relaxed);
  const culaunch::Driver* driver = state.driver.load(std::memory_order_relaxed);
  if (CULAUNCH_UNLIKELY(replay == nullptr) || CULAUNCH_UNLIKELY(!replay->is_quick()) ||
      CULAUNCH_UNLIKELY(driver != program.driver) ||
      CULAUNCH_UNLIKELY(driver->note_array != nullptr) ||
      CULAUNCH_UNLIKELY(watch != nullptr && !watch->HoldsAtAGlance())) {
    return false;
  }
  QuickCall call(*kind, program, *replay);
  if (CULAUNCH_UNLIKELY(!call.Read(args)) || CULAUNCH_UNLIKELY(IsTorchWatching())) return false;
  *result = nullptr;
  const int found = call.FindStream(state.device_type.load(std::memory_order_relaxed));
  if (CULAUNCH_UNLIKELY(found <= 0)) return found < 0;
  CUlaunchConfig config;
  CUresult code = CUDA_SUCCESS;
  const ReplayStep* failed;
  replay->Take();
  {
    // A launch waits while the stream's queue is full.
    const ReleaseGil released;
    failed = call.Launch(&config, &code);
  }
  if (CULAUNCH_UNLIKELY(failed != nullptr)) {
    RaiseLaunchFailure(*failed->launch->kernel, config, call.ordinal(), code);
    PrefixError(failed->launch->text);
  } else {
    const int32_t array = replay->result();
    *result = Ref::Borrow(array < 0 ? Py_None : call.object(array)).release();
  }
  replay->Drop();
  return true;
#endif
}

}  // namespace function
