#include "function/execution.h"

#include <culaunch/guard.h>

#include <algorithm>
#include <cstring>

#include "driver/errors.h"
#include "formats/half.h"
#include "function/problems.h"
#include "launch/launch_failure.h"
#include "python/free_threaded_lock.h"

namespace function {

Execution::Execution(FunctionCall& call)
    : call_(call), program_(*call.program_), registers_(call.program_->registers) {
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
}

// ---- the plan

inline bool Execution::Recall() {
  auto& program = const_cast<Program&>(program_);
  const FreeThreadedLock lock(program.mutex);
  const Memo& memo = program.memo;
  if (memo.leaf < 0 || !std::equal(memo.inputs.begin(), memo.inputs.end(), call_.inputs_.data())) {
    return false;
  }
  std::copy(memo.registers.begin(), memo.registers.end(), registers_.data());
  leaf_ = memo.leaf;
  return true;
}

void Execution::Remember() {
  auto& program = const_cast<Program&>(program_);
  const FreeThreadedLock lock(program.mutex);
  Memo& memo = program.memo;
  const Word* inputs = call_.inputs_.data();
  memo.inputs.assign(inputs, inputs + program.inputs.size());
  memo.registers.assign(registers_.data(), registers_.data() + program.registers);
  memo.leaf = leaf_;
}

PlanEnd Execution::Plan() {
  if (!CULAUNCH_UNLIKELY(!Recall())) {
    is_checked_ = true;
    return PlanEnd::kLeaf;
  }
  std::fill(registers_.data(), registers_.data() + program_.registers, 0);
  return RunPlan(call_.state_.self, program_, call_.inputs_.data(), call_.place_.driver,
                 call_.place_.device.device_id, registers_.data(), &leaf_);
}

void Execution::MakeView(const Effect& effect) {
  ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  const ArrayValue& source = call_.arrays_[static_cast<size_t>(effect.source)];
  const auto address = reinterpret_cast<uintptr_t>(source.data);
  value.data = reinterpret_cast<char*>(address + static_cast<uintptr_t>(Int(effect.value)));
  value.number = effect.number;
  value.base = source.base;
  value.effect = &effect;
}

// An array as Python has it, borrowed. Null with a Python error set.
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
  // The driver has the fastest dimension first.
  for (size_t i = rank; i-- > 0;) sizes[i] = static_cast<cuuint64_t>(Int(*next++));
  for (size_t i = rank - 1; i-- > 0;) strides[i] = static_cast<cuuint64_t>(Int(*next++));
  for (cuuint32_t* numbers : {box, steps}) {
    for (size_t i = rank; i-- > 0;) {
      const Word value = Int(*next++);
      if (value < 0 || value > UINT32_MAX) return CUDA_ERROR_INVALID_VALUE;
      numbers[i] = static_cast<cuuint32_t>(value);
    }
  }
  CUtensorMap map;  // cuda.h says how it is aligned
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
inline CUresult Execution::Fill(const Part& part, unsigned char* target) {
  if (part.source == Source::kArray) {
    const char* data = call_.arrays_[static_cast<size_t>(part.index)].data;
    std::memcpy(target, &data, sizeof data);
  } else if (part.source == Source::kInt) {
    const Word value = Int(part.index);  // little-endian: the low bytes
    if (part.size == 4) {
      std::memcpy(target, &value, 4);
    } else {
      std::memcpy(target, &value, part.size);
    }
  } else if (part.source == Source::kFloat) {
    const double value = AsFloat(Int(part.index));
    const auto narrow = static_cast<float>(value);
    constexpr uint8_t kBfloat = 4;
    if (part.size == sizeof narrow) {
      std::memcpy(target, &narrow, sizeof narrow);
    } else if (part.size == sizeof value) {
      std::memcpy(target, &value, sizeof value);
    } else {
      const uint16_t bits = part.code == kBfloat ? Bfloat16Bits(value) : Float16Bits(value);
      std::memcpy(target, &bits, sizeof bits);
    }
  } else if (part.source == Source::kBool) {
    *target = Int(part.index) != 0 ? 1 : 0;
  } else if (part.source == Source::kNull) {
    std::memset(target, 0, part.size);
  } else if (part.source == Source::kBytes) {
    std::memcpy(target, part.bytes.data(), part.size);
    for (const Part& field : part.fields) {
      const CUresult code = Fill(field, target + field.offset);
      if (code != CUDA_SUCCESS) return code;
    }
  } else {
    return EncodeMap(part, target);
  }
  return CUDA_SUCCESS;
}

inline CUresult Execution::Launch(const Effect& effect, Failure* failure) {
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
  const int ordinal = call_.place_.device.device_id;
  CUresult code;
  if (CULAUNCH_UNLIKELY((launch.flags & ~kHasSharedMemory) != 0)) {
    const culaunch::DriverLaunchConfig config(ConfigOf(effect));
    CUlaunchConfig own = config.get();
    own.hStream = call_.place_.stream;
    code = kernel.state->Launch(own, ordinal, pointers.data());
    if (code != CUDA_SUCCESS) failure->config = own;
    return code;
  }
  CUlaunchConfig config;
  config.gridDimX = static_cast<unsigned>(Int(launch.dims[0]));
  config.gridDimY = static_cast<unsigned>(Int(launch.dims[1]));
  config.gridDimZ = static_cast<unsigned>(Int(launch.dims[2]));
  config.blockDimX = static_cast<unsigned>(Int(launch.dims[3]));
  config.blockDimY = static_cast<unsigned>(Int(launch.dims[4]));
  config.blockDimZ = static_cast<unsigned>(Int(launch.dims[5]));
  config.sharedMemBytes = SharedMemoryOf(launch);
  config.hStream = call_.place_.stream;
  config.attrs = nullptr;
  config.numAttrs = 0;
  code = kernel.state->Launch(config, ordinal, pointers.data());
  if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) failure->config = config;
  return code;
}

const Effect* Execution::Enqueue(const Effect* effect, const Effect* end, Failure* failure) {
  const bool is_noted = call_.place_.driver->note_array != nullptr;
  if (CULAUNCH_UNLIKELY(is_noted)) TellDriver();
  // A launch waits while the stream's queue is full.
  const ReleaseGil released;
  for (; effect != end; ++effect) {
    CUresult code = CUDA_SUCCESS;
    if (effect->code == EffectCode::kLaunch) {
      if (CULAUNCH_UNLIKELY(effect->predicate >= 0) && IsSkipped(*effect)) continue;
      code = Launch(*effect, failure);
    } else if (effect->code == EffectCode::kView) {
      MakeView(*effect);
    } else {
      break;
    }
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      failure->effect = effect;
      failure->code = code;
      break;
    }
    if (CULAUNCH_UNLIKELY(is_noted)) return effect + 1;
  }
  return effect;
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

PyObject* Execution::Run() {
  if (!is_checked_) {
    if (!CheckEffects()) return nullptr;
    Remember();
  }
  const std::vector<Effect>& effects = program_.blocks[static_cast<size_t>(leaf_)].effects;
  const Effect* const end = effects.data() + effects.size();
  for (const Effect* effect = effects.data(); effect != end;) {
    if (effect->code == EffectCode::kLaunch) {
      Failure failure;
      effect = Enqueue(effect, end, &failure);
      if (CULAUNCH_UNLIKELY(failure.effect != nullptr)) return RaiseFailure(failure), nullptr;
      continue;
    }
    bool is_done = true;
    switch (effect->code) {
      case EffectCode::kAllocate:
        is_done = Allocate(*effect);
        if (!is_done) PrefixError(Text(*effect));
        if (is_done && effect->zeros) {
          const ArrayValue& value = call_.arrays_[static_cast<size_t>(effect->array)];
          is_done = Zero(*effect, value.data, 0, value.bytes);
        }
        break;
      case EffectCode::kView:
        MakeView(*effect);
        break;
      case EffectCode::kMemset:
        if (!IsSkipped(*effect)) {
          const ArrayValue& value = call_.arrays_[static_cast<size_t>(effect->array)];
          is_done = CheckFill(*effect) && Zero(*effect, value.data, Int(effect->value),
                                               static_cast<size_t>(Int(effect->bytes)));
        }
        break;
      case EffectCode::kConstantArray:
        is_done = ReadConstantArray(*effect);
        break;
      case EffectCode::kCall:
        is_done = IsSkipped(*effect) || Call(*effect);
        break;
      default: {
        const Word* word = effect->result.data();
        return Result(&word).release();
      }
    }
    if (!is_done) return nullptr;
    ++effect;
  }
  return nullptr;
}
}  // namespace function
