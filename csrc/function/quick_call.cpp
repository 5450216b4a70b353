#include "function/quick_call.h"

#include "arguments/torch/allocated.h"
#include "arguments/torch/modes.h"
#include "arguments/torch/tensor.h"
#include "arguments/views/element_types.h"
#include "function/execution/fresh_memory.h"
#include "function/plans/gather.h"
#include "function/plans/replay.h"
#include "function/program/problems.h"
#include "launch/launch_failure.h"
#include "python/numbers.h"

namespace function {

namespace {

class QuickCall {
 public:
  QuickCall(const Kind& kind, const Program& program, Replay* replay)
      : kind_(kind), program_(program), replay_(replay), driver_(program.driver) {}
  QuickCall(const QuickCall&) = delete;
  QuickCall& operator=(const QuickCall&) = delete;
  ~QuickCall() {
    if (!is_kept_) return;
    for (size_t i = 0; i < made_count_; ++i) Free(&made_[i].memory);
    replay_->Drop();
  }

  // Read the arguments, and compare them with the last call's. False: something other than a number
  // differs.
  bool Read(PyObject* const* args);

  // Set the stream; -1 with a Python error set, 0 if the call is not for this device.
  int FindStream(int device_type);

  // Whether the changed numbers lead to the same effects with other values.
  bool Follow() {
    return changes_count_ == 0 || replay_->Follow(program_, changes_, changes_count_);
  }

  // Execute the effects, and return the result. The program may be freed meanwhile; the replay
  // stays.
  PyObject* Run();

 private:
  // An allocated array.
  struct Made {
    int32_t array;
    Allocated memory;
  };

  bool ReadTensor(const Step& step, PyObject* object);
  bool ReadTensors(const Step& sequence, PyObject* object);
  bool HasInput(int32_t input, Word value) const {
    return input < 0 || replay_->inputs()[input] == value;
  }
  // The same for a number, which may have changed.
  bool TakeNumber(int32_t input, Word value) {
    if (HasInput(input, value)) return true;
    if (changes_count_ == kMostChanges) return false;
    changes_[changes_count_++] = {input, value};
    return true;
  }
  // Launch, without the GIL, up to a step that is another effect. Null with a Python error set.
  const ReplayStep* Launch(const ReplayStep* step);
  bool Allocate(const ReplayStep& step);
  // Make all arrays, then all launches. False with a Python error set.
  bool RunChain();
  PyObject* RaiseFailure(const ReplayStep& step, const CUlaunchConfig& config, CUresult code);
  PyObject* Result(int32_t array);

  const Kind& kind_;
  const Program& program_;
  Replay* const replay_;
  culaunch::Driver* const driver_;  // the program may be freed first
  bool is_kept_ = false;
  const TypeEntry* entry_ = nullptr;
  size_t arrays_ = 0;
  size_t made_count_ = 0;
  size_t changes_count_ = 0;
  char* scratch_ = nullptr;
  DLDevice device_ = {0, 0};
  CUstream stream_ = nullptr;
  char* addresses_[Replay::kQuickArrays];
  PyObject* objects_[Replay::kQuickArrays];
  Made made_[Replay::kQuickArrays];
  static constexpr size_t kMostChanges = 32;
  NumberChange changes_[kMostChanges];
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
  // The general path asks tensors whether they require grad.
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
    if (CULAUNCH_UNLIKELY(value != replay_->inputs()[i])) return false;
  }
  addresses_[arrays_] = static_cast<char*>(tensor.data);
  objects_[arrays_++] = object;
  return true;
}

bool QuickCall::ReadTensors(const Step& sequence, PyObject* object) {
  if (!PyTuple_Check(object) || Py_SIZE(object) != sequence.items) return false;
  for (int32_t i = 0; i < sequence.items; ++i) {
    if (!ReadTensor((&sequence)[1 + i], PyTuple_GetItem(object, i))) return false;
  }
  return true;
}

inline bool QuickCall::Read(PyObject* const* args) {
  const int32_t* input = program_.number_inputs;
  const Step* const end = kind_.steps.data() + kind_.steps.size();
  for (const Step* next = kind_.steps.data(); next != end;) {
    const Step& step = *next++;
    PyObject* object = *args++;
    bool is_same = false;
    if (step.code == Step::kArray) {
      is_same = ReadTensor(step, object);
    } else if (step.code == Step::kTuple) {
      is_same = ReadTensors(step, object);
      next += step.items;
    } else if (step.code == Step::kInt) {
      int64_t value;
      is_same =
          PyLong_CheckExact(object) && ReadSmallInt(object, &value) && TakeNumber(*input, value);
    } else if (step.code == Step::kFloat) {
      is_same = PyFloat_CheckExact(object) && TakeNumber(*input, FromFloat(ReadFloat(object)));
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

inline const ReplayStep* QuickCall::Launch(const ReplayStep* step) {
  CUlaunchConfig config;
  CUresult code = CUDA_SUCCESS;
  {
    // A launch waits while the stream's queue is full.
    const ReleaseGil released;
    for (;; ++step) {
      if (step->code == EffectCode::kLaunch) {
        code = step->launch->Launch(device_.device_id, stream_, &config,
                                    [this](int32_t array) { return &addresses_[array]; });
        if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) break;
      } else if (step->code == EffectCode::kView) {
        addresses_[step->array] = addresses_[step->source] + step->offset;
      } else if (step->code == EffectCode::kAllocate && scratch_ != nullptr && step->offset >= 0) {
        addresses_[step->array] = scratch_ + step->offset;
      } else {
        break;
      }
    }
  }
  if (!CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) return step;
  RaiseFailure(*step, config, code);
  return nullptr;
}

CULAUNCH_RARE PyObject* QuickCall::RaiseFailure(const ReplayStep& step,
                                                const CUlaunchConfig& config, CUresult code) {
  RaiseLaunchFailure(*step.launch->kernel, config, device_.device_id, code);
  PrefixError(step.text);
  return nullptr;
}

bool QuickCall::RunChain() {
  for (const ReplayStep* step = replay_->begin(); step != replay_->end(); ++step) {
    if (step->code == EffectCode::kView) {
      addresses_[step->array] = addresses_[step->source] + step->offset;
    } else if (step->code == EffectCode::kAllocate && scratch_ != nullptr && step->offset >= 0) {
      addresses_[step->array] = scratch_ + step->offset;
    } else if (step->code == EffectCode::kAllocate && CULAUNCH_UNLIKELY(!Allocate(*step))) {
      return false;
    }
  }
  const ReplayStep* failed = nullptr;
  CUlaunchConfig config;
  CUresult code;
  {
    const ReleaseGil released;
    code = replay_->LaunchAll(
        *driver_, device_.device_id, stream_, [this](int32_t array) { return &addresses_[array]; },
        [] {}, &failed, &config);
  }
  return code == CUDA_SUCCESS || RaiseFailure(*failed, config, code) != nullptr;
}

inline bool QuickCall::Allocate(const ReplayStep& step) {
  const bool is_shared = step.offset >= 0 && replay_->scratch_bytes() != 0;
  char*& data = addresses_[step.array];
  const auto shared = static_cast<int64_t>(replay_->scratch_bytes());
  const ReadyMemory& memory = *step.memory;
  Made& made = made_[made_count_++];
  made = {step.array, {nullptr, nullptr}};
  const bool is_made =
      is_shared
          ? AllocateDense(entry_->api, device_, {kDLUInt, 8, 1}, 1, &shared, &data, &made.memory)
          : AllocateDense(entry_->api, device_, operands::TypeOf(step.number), memory.rank,
                          memory.shape, &data, &made.memory);
  if (CULAUNCH_UNLIKELY(!is_made)) {
    PrefixError(step.text);
    return false;
  }
  if (is_shared) {
    scratch_ = data;
    data += step.offset;
  }
  return true;
}

inline PyObject* QuickCall::Result(int32_t array) {
  if (array == Replay::kNothing) return Ref::Borrow(Py_None).release();
  if (static_cast<size_t>(array) < arrays_) return Ref::Borrow(objects_[array]).release();
  size_t i = 0;
  while (made_[i].array != array) ++i;
  return TakeObject(entry_->api, &made_[i].memory);
}

inline PyObject* QuickCall::Run() {
  replay_->Take();
  is_kept_ = true;
  if (replay_->is_chain() && driver_->graphs.is_on()) {
    return RunChain() ? Result(replay_->result()) : nullptr;
  }
  const ReplayStep* step = replay_->begin();
  while (step->code != EffectCode::kReturn) {
    // The first scratch array allocates memory for all of them. Launch places the others.
    if (step->code == EffectCode::kAllocate && (step->offset < 0 || scratch_ == nullptr)) {
      if (CULAUNCH_UNLIKELY(!Allocate(*step))) return nullptr;
      ++step;
    } else {
      step = Launch(step);
      if (CULAUNCH_UNLIKELY(step == nullptr)) return nullptr;
    }
  }
  return Result(replay_->result());
}

}  // namespace

bool CallQuickly(State& state, PyObject* const* args, PyObject** result) {
#ifdef Py_GIL_DISABLED
  // Another thread may replace the values read here. The general path takes the locks.
  return false;
#else
  const Kind* kind = state.last.load(std::memory_order_relaxed);
  if (CULAUNCH_UNLIKELY(kind == nullptr) || CULAUNCH_UNLIKELY(kind->program == nullptr)) {
    return false;
  }
  const Program& program = *kind->program->program;
  Replay* replay = program.replay;
  const Watch* watch = state.watch.load(std::memory_order_relaxed);
  const culaunch::Driver* driver = state.driver.load(std::memory_order_relaxed);
  if (CULAUNCH_UNLIKELY(replay == nullptr) || CULAUNCH_UNLIKELY(!replay->is_quick()) ||
      CULAUNCH_UNLIKELY(driver != program.driver) ||
      CULAUNCH_UNLIKELY(driver->note_array != nullptr) ||
      CULAUNCH_UNLIKELY(driver->graphs.observer() != nullptr) ||
      CULAUNCH_UNLIKELY(watch != nullptr && !watch->HoldsAtAGlance())) {
    return false;
  }
  QuickCall call(*kind, program, replay);
  if (CULAUNCH_UNLIKELY(!call.Read(args)) || CULAUNCH_UNLIKELY(IsTorchWatching())) return false;
  *result = nullptr;
  const int found = call.FindStream(state.device_type.load(std::memory_order_relaxed));
  if (CULAUNCH_UNLIKELY(found <= 0)) return found < 0;
  if (CULAUNCH_UNLIKELY(!call.Follow())) return false;
  *result = call.Run();
  return true;
#endif
}

}  // namespace function
