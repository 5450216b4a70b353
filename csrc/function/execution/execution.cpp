#include "function/execution/execution.h"

#include <culaunch/demangle.h>
#include <culaunch/guard.h>
#include <culaunch/launch_observer.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "driver/errors.h"
#include "function/plans/parameter_parts.h"
#include "function/program/problems.h"
#include "launch/launch_failure.h"
#include "python/free_threaded_lock.h"

namespace function {

Execution::Execution(FunctionCall& call) : call_(call), program_(*call.program_) {
  for (size_t i = program_.argument_arrays; i < program_.arrays; ++i) {
    call_.arrays_[i].object = nullptr;
    call_.arrays_[i].is_owned = false;
    call_.arrays_[i].allocated = {nullptr, nullptr};
  }
}

Execution::~Execution() {
  for (size_t i = program_.argument_arrays; i < program_.arrays; ++i) {
    ArrayValue& value = call_.arrays_[i];
    if (value.allocated.is_made()) Free(&value.allocated);
    if (value.is_owned) Py_XDECREF(value.object);
  }
  if (replay_ == nullptr) return;
  const FreeThreadedLock lock(const_cast<Program&>(program_).mutex);
  replay_->Drop();
}

// ---- the plan

// Whether the replay has the inputs of this call, or can be updated to the numbers that changed.
inline bool Execution::LetFollow(Replay& replay) const {
  constexpr size_t kMostChanges = 32;
  NumberChange changes[kMostChanges];
  size_t count = 0;
  const Word* const before = replay.inputs();
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const Word value = call_.inputs_.data()[i];
    if (value == before[i]) continue;
    const Input::Kind kind = program_.inputs[i].kind;
    if ((kind != Input::kInt && kind != Input::kFloat) || count == kMostChanges) return false;
    changes[count++] = {static_cast<int32_t>(i), value};
  }
  return count == 0 || replay.Follow(program_, changes, count);
}

inline bool Execution::Recall() {
  const FreeThreadedLock lock(const_cast<Program&>(program_).mutex);
  Replay* replay = program_.replay;
  if (replay == nullptr || !replay->is_current() || !LetFollow(*replay)) return false;
  replay->Take();
  replay_ = replay;
  registers_ = replay->registers();
  leaf_ = replay->leaf();
  return true;
}

void Execution::Remember() {
  auto& program = const_cast<Program&>(program_);
  const FreeThreadedLock lock(program.mutex);
  Replay* old = program.replay;
  Replay* replay = Replay::Make(program_, call_.inputs_.data(), registers_, leaf_, old);
  if (replay != old && old != nullptr) old->Drop();
  program.replay = replay;
  replay->Take();
  replay_ = replay;
  registers_ = replay->registers();
}

PlanEnd Execution::Plan() {
  if (!CULAUNCH_UNLIKELY(!Recall())) return PlanEnd::kLeaf;
  if (program_.registers > kUsualRegisters) planned_.Grow(program_.registers, 0);
  std::fill(planned_.data(), planned_.data() + program_.registers, 0);
  registers_ = planned_.data();
  return RunPlan(call_.state_.self, program_, call_.inputs_.data(), call_.place_.driver,
                 call_.place_.device.device_id, planned_.data(), &leaf_);
}

void Execution::MakeView(const Effect& effect, int64_t offset) {
  ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  const ArrayValue& source = call_.arrays_[static_cast<size_t>(effect.source)];
  const auto address = reinterpret_cast<uintptr_t>(source.data);
  value.data = reinterpret_cast<char*>(address + static_cast<uintptr_t>(offset));
  value.number = effect.number;
  value.base = source.base;
  value.effect = &effect;
}

// The Python object of an array, borrowed. Null with a Python error set.
PyObject* Execution::ObjectOf(int32_t array) {
  ArrayValue& value = call_.arrays_[static_cast<size_t>(array)];
  if (value.object != nullptr) return value.object;
  if (value.base != array) return ObjectOfView(array);
  value.object = TakeObject(call_.place_.entry->api, &value.allocated);
  value.is_owned = value.object != nullptr;
  return value.object;
}

// ---- launches

CUresult Execution::EncodeMap(const Part& part, unsigned char* target) {
  culaunch::Driver& driver = *call_.place_.driver;
  if (driver.cuTensorMapEncodeTiled == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  cuuint64_t sizes[5] = {};
  cuuint64_t strides[5] = {};
  cuuint32_t box[5] = {};
  cuuint32_t steps[5] = {};
  const auto rank = static_cast<size_t>(part.rank);
  const int32_t* next = part.registers.data();
  // The driver's order starts with the fastest dimension.
  for (size_t i = rank; i-- > 0;) sizes[i] = static_cast<cuuint64_t>(Int(*next++));
  for (size_t i = rank - 1; i-- > 0;) strides[i] = static_cast<cuuint64_t>(Int(*next++));
  for (cuuint32_t* numbers : {box, steps}) {
    for (size_t i = rank; i-- > 0;) {
      const Word value = Int(*next++);
      if (value < 0 || value > UINT32_MAX) return CUDA_ERROR_INVALID_VALUE;
      numbers[i] = static_cast<cuuint32_t>(value);
    }
  }
  CUtensorMap map;  // cuda.h declares its alignment
  const CUresult code = driver.cuTensorMapEncodeTiled(
      &map, static_cast<CUtensorMapDataType>(part.map[0]), static_cast<cuuint32_t>(rank),
      call_.arrays_[static_cast<size_t>(part.index)].data, sizes, strides, box, steps,
      static_cast<CUtensorMapInterleave>(part.map[1]), static_cast<CUtensorMapSwizzle>(part.map[2]),
      static_cast<CUtensorMapL2promotion>(part.map[3]),
      static_cast<CUtensorMapFloatOOBfill>(part.map[4]));
  if (code == CUDA_SUCCESS) std::memcpy(target, &map, sizeof map);
  return code;
}

// Write a parameter, or a field of one.
CUresult Execution::Fill(const Part& part, unsigned char* target) {
  if (part.source == Source::kArray) {
    const char* data = call_.arrays_[static_cast<size_t>(part.index)].data;
    std::memcpy(target, &data, sizeof data);
    return CUDA_SUCCESS;
  }
  if (part.source == Source::kTensorMap) return EncodeMap(part, target);
  if (part.source != Source::kBytes) {
    FillFixed(part, registers_, target);
    return CUDA_SUCCESS;
  }
  std::memcpy(target, part.bytes.data(), part.size);
  for (const Part& field : part.fields) {
    const CUresult code = Fill(field, target + field.offset);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult Execution::Launch(const Effect& effect, Failure* failure) {
  const function::Launch& launch = *effect.launch;
  const KernelObject& kernel = *launch.kernel;
  // Kernels have at most 4 KiB of parameters, or 32,764 bytes from CUDA 12.1 on.
  SmallBuffer<unsigned char, 4096, 64> block(kernel.bytes);
  SmallBuffer<void*, 64> pointers(kernel.count);
  void** pointer = pointers.data();
  for (const Part& part : launch.parts) {
    unsigned char* target = block.data() + part.offset;
    *pointer++ = target;
    const CUresult code = Fill(part, target);
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      failure->what = kEncoding;
      return code;
    }
  }
  const culaunch::DriverLaunchConfig config(ConfigOf(effect));
  CUlaunchConfig own = config.get();
  own.hStream = call_.place_.stream;
  const CUresult code = kernel.state->Launch(own, call_.place_.device.device_id, pointers.data());
  if (code != CUDA_SUCCESS) failure->config = own;
  return code;
}

CULAUNCH_RARE void Execution::NoteBytes(const Effect& effect,
                                        culaunch::LaunchObserver* observer) const {
  std::set<std::pair<const char*, size_t>> seen;  // each array once
  bool is_known = true;
  const auto add = [&](const Part& part) {
    if (part.source != Source::kArray && part.source != Source::kTensorMap) return;
    const ArrayValue& value = call_.arrays_[static_cast<size_t>(part.index)];
    // A program does not record the shape of a view that only a kernel sees.
    is_known = is_known && value.base == part.index;
    seen.insert({value.data, value.bytes});
  };
  for (const Part& part : effect.launch->parts) {
    add(part);
    for (const Part& field : part.fields) add(field);
  }
  int64_t all = 0;
  for (const auto& one : seen) all += static_cast<int64_t>(one.second);
  if (is_known && !seen.empty()) observer->NoteBytes(*effect.launch->kernel->state, all);
}

const ReplayStep* Execution::Enqueue(const ReplayStep* step, const ReplayStep* end,
                                     Failure* failure) {
  const bool is_noted = call_.place_.driver->note_array != nullptr;
  if (CULAUNCH_UNLIKELY(is_noted)) TellDriver();
  // A launch waits while the stream's queue is full.
  const ReleaseGil released;
  for (; step != end; ++step) {
    if (step->code == EffectCode::kView) {
      MakeView(*step->effect, step->offset);
      continue;
    }
    if (step->code != EffectCode::kLaunch) break;
    CUresult code;
    if (!CULAUNCH_UNLIKELY(step->launch == nullptr)) {
      code = step->launch->Launch(
          call_.place_.device.device_id, call_.place_.stream, &failure->config,
          [this](int32_t array) { return &call_.arrays_[static_cast<size_t>(array)].data; });
    } else {
      code = Launch(*step->effect, failure);
    }
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      failure->effect = step->effect;
      failure->code = code;
      break;
    }
    if (auto* const observer = call_.place_.driver->graphs.observer();
        CULAUNCH_UNLIKELY(observer != nullptr)) {
      NoteBytes(*step->effect, observer);
    }
    if (CULAUNCH_UNLIKELY(is_noted)) return step + 1;
  }
  return step;
}

bool Execution::RaiseFailure(const Failure& failure) const {
  culaunch::KernelState& state = *failure.effect->launch->kernel->state;
  if (failure.what == nullptr) {
    RaiseLaunchFailure(state, failure.config, call_.place_.device.device_id, failure.code);
  } else {
    Guarded<bool>("LaunchError", false, [&] {
      state.driver().Check(failure.code,
                           std::string(failure.what) + " " + culaunch::Demangle(state.name()));
      return true;
    });
  }
  PrefixError(Text(*failure.effect));
  return false;
}

// Effects, except launches and RETURN. False with a Python error set.
bool Execution::Do(const ReplayStep& step) {
  const Effect& effect = *step.effect;
  switch (step.code) {
    case EffectCode::kAllocate: {
      if (!Allocate(step)) {
        PrefixError(Text(effect));
        return false;
      }
      const ArrayValue& value = call_.arrays_[static_cast<size_t>(step.array)];
      return !effect.zeros || Zero(effect, value.data, 0, value.bytes);
    }
    case EffectCode::kView:
      MakeView(effect, step.offset);
      return true;
    case EffectCode::kMemset: {
      const ArrayValue& value = call_.arrays_[static_cast<size_t>(step.array)];
      return CheckFill(effect) &&
             Zero(effect, value.data, Int(effect.value), static_cast<size_t>(Int(effect.bytes)));
    }
    case EffectCode::kConstantArray:
      return ReadConstantArray(effect);
    default:
      return Call(effect);
  }
}

bool Execution::RunChain() {
  for (const ReplayStep* step = replay_->begin(); step->code != EffectCode::kReturn; ++step) {
    if (step->code != EffectCode::kLaunch && !Do(*step)) return false;
  }
  const bool is_noted = call_.place_.driver->note_array != nullptr;
  const ReplayStep* failed = nullptr;
  Failure failure;
  {
    const ReleaseGil released;
    failure.code = replay_->LaunchAll(
        *call_.place_.driver, call_.place_.device.device_id, call_.place_.stream,
        [this](int32_t array) { return &call_.arrays_[static_cast<size_t>(array)].data; },
        [&] {
          if (is_noted) TellDriver();
        },
        &failed, &failure.config);
  }
  if (failure.code == CUDA_SUCCESS) return true;
  failure.effect = failed->effect;
  return RaiseFailure(failure);
}

PyObject* Execution::Run() {
  if (replay_ == nullptr) {
    if (!CheckEffects()) return nullptr;
    Remember();
  }
  if (CULAUNCH_UNLIKELY(call_.place_.driver->note_array != nullptr)) ReadStorages();
  const ReplayStep* const end = replay_->end();
  if (replay_->is_chain() && call_.place_.driver->graphs.is_on()) {
    if (!RunChain()) return nullptr;
    const Word* word = end[-1].effect->result.data();
    return Result(&word).release();
  }
  for (const ReplayStep* step = replay_->begin(); step != end;) {
    if (step->code == EffectCode::kLaunch) {
      Failure failure;
      step = Enqueue(step, end, &failure);
      if (CULAUNCH_UNLIKELY(failure.effect != nullptr)) return RaiseFailure(failure), nullptr;
      continue;
    }
    if (step->code == EffectCode::kReturn) {
      const Word* word = step->effect->result.data();
      return Result(&word).release();
    }
    if (!Do(*step)) return nullptr;
    ++step;
  }
  return nullptr;
}
}  // namespace function
