// The errors in a program's effects that are known before the first of them is executed.
#include <culaunch/explain.h>
#include <culaunch/guard.h>

#include <algorithm>

#include "driver/errors.h"
#include "function/execution/execution.h"
#include "function/plans/parameter_parts.h"
#include "function/program/problems.h"
#include "launch/launch_failure.h"

namespace function {

bool Execution::CheckAllocation(const Effect& effect) {
  size_t bytes = 0;
  const Word* registers = registers_;
  const bool is_negative = std::any_of(effect.shape.begin(), effect.shape.end(),
                                       [&](int32_t index) { return registers[index] < 0; });
  if (!is_negative && (effect.code == EffectCode::kView || BytesOf(effect, registers, &bytes))) {
    return true;
  }
  std::vector<int64_t> shape;
  for (const int32_t index : effect.shape) shape.push_back(registers[index]);
  const Ref tuple = TupleOf(shape.data(), static_cast<int>(shape.size()));
  if (tuple) {
    PyErr_Format(PyExc_ValueError,
                 is_negative ? "a dimension of the shape %R is negative"
                             : "an array of the shape %R is larger than any memory",
                 tuple.get());
  }
  PrefixError(Text(effect));
  return false;
}

culaunch::LaunchConfig Execution::ConfigOf(const Effect& effect) const {
  const function::Launch& launch = *effect.launch;
  const auto dims = [&](const int32_t* registers) {
    return culaunch::Dim3(static_cast<uint32_t>(Int(registers[0])),
                          static_cast<uint32_t>(Int(registers[1])),
                          static_cast<uint32_t>(Int(registers[2])));
  };
  culaunch::LaunchConfig config(dims(launch.dims), dims(launch.dims + 3), SharedMemoryOf(launch));
#define CULAUNCH_DIMS(name, flag, attribute, value, text) \
  if ((launch.flags & flag) != 0) config.name = dims(launch.name);
#define CULAUNCH_SWITCH(name, flag, attribute, value, text) \
  config.name = (launch.flags & flag) != 0;
#define CULAUNCH_INT(name, flag, attribute, value, text) \
  config.has_##name = (launch.flags & flag) != 0;        \
  if (config.has_##name) config.name = static_cast<int>(Int(launch.name));
  CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_SWITCH, CULAUNCH_INT)
#undef CULAUNCH_DIMS
#undef CULAUNCH_SWITCH
#undef CULAUNCH_INT
  return config;
}

// Whether a kernel can run with blocks of this size, which may depend on its registers.
bool Execution::TakesBlock(culaunch::KernelState& kernel,
                           const culaunch::LaunchConfig& config) const {
  constexpr uint64_t kAlways = 128;
  const uint64_t threads = config.block.Volume();
  if (threads <= kAlways) return true;
  const int most = kernel.MaxThreads(call_.place_.device.device_id);
  return most == 0 || threads <= static_cast<uint64_t>(most);
}

// Whether the numbers of a launch fit their fields. If not, the error names the option.
bool Execution::CheckRanges(const Effect& effect) {
  const function::Launch& launch = *effect.launch;
  const auto fail = [&](const char* name, const char* rule, Word value) {
    PyErr_Format(PyExc_OverflowError, "%s must be %s (got %lld)", name, rule,
                 static_cast<long long>(value));
    PrefixError(Text(effect));
    return false;
  };
  const auto dims = [&](const char* name, const int32_t* registers) {
    for (int i = 0; i < 3 && registers[i] >= 0; ++i) {
      const Word dim = Int(registers[i]);
      if (dim < 0 || dim > UINT32_MAX) {
        return fail(name, "from 1 to 2^31 - 1 in every dimension", dim);
      }
    }
    return true;
  };
  const auto number = [&](const char* name, int32_t index) {
    if (index < 0 || Int(index) == static_cast<int>(Int(index))) return true;
    return fail(name, "an int of 32 bits", Int(index));
  };
  if (!dims("grid", launch.dims) || !dims("block", launch.dims + 3)) return false;
  const Word shared = launch.shared_memory >= 0 ? Int(launch.shared_memory) : 0;
  if (shared < 0 || shared > UINT32_MAX) {
    return fail("shared_memory", "a number of bytes, an int from 0 to 2^32 - 1", shared);
  }
#define CULAUNCH_DIMS(name, flag, attribute, value, text) \
  if (!dims(#name, launch.name)) return false;
#define CULAUNCH_INT(name, flag, attribute, value, text) \
  if (!number(#name, launch.name)) return false;
  CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_NO_LAUNCH_ATTRIBUTE, CULAUNCH_INT)
#undef CULAUNCH_DIMS
#undef CULAUNCH_INT
  return true;
}

bool Execution::CheckLaunch(const Effect& effect) {
  if (!CheckRanges(effect)) return false;
  const function::Launch& launch = *effect.launch;
  const culaunch::LaunchConfig config = ConfigOf(effect);
  const bool is_valid = Guarded<bool>(nullptr, false, [&] {
    config.Validate();
    return true;
  });
  if (!is_valid) {
    PrefixError(Text(effect));
    return false;
  }
  // Without this check, the driver would refuse an impossible launch only after the launches before
  // it.
  const bool is_usual = config.grid.y <= 65535 && config.grid.z <= 65535 &&
                        config.grid.x <= INT32_MAX && config.block.Volume() <= 1024 &&
                        config.block.z <= 64 && config.shared_memory <= (228u << 10);
  culaunch::KernelState& kernel = *launch.kernel->state;
  const int ordinal = call_.place_.device.device_id;
  const culaunch::DriverLaunchConfig own(config);
  CUresult code = CUDA_ERROR_INVALID_VALUE;
  if (is_usual && TakesBlock(kernel, config)) {
    code = WithoutGil([&] {
      const CUresult ready = kernel.MakeReady(own.get(), ordinal);
      return ready != CUDA_SUCCESS || own.get().numAttrs == 0
                 ? ready
                 : culaunch::RefusalOf(kernel.driver(), kernel.handle(), own.get(), ordinal);
    });
  }
  if (code == CUDA_SUCCESS) return CheckMaps(effect);
  RaiseLaunchFailure(kernel, own.get(), ordinal, code);
  PrefixError(Text(effect));
  return false;
}

// Whether the driver accepts the sizes of a launch's tensor maps. Maps over arrays that are not
// allocated yet are encoded with a placeholder address.
bool Execution::CheckMaps(const Effect& effect) {
  const auto encoded = [&](const Part& part, const auto& self) -> CUresult {
    alignas(64) unsigned char room[sizeof(CUtensorMap)];
    if (part.source == Source::kTensorMap) return EncodeMap(part, room);
    for (const Part& field : part.fields) {
      const CUresult code = self(field, self);
      if (code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  };
  for (const Part& part : effect.launch->parts) {
    const CUresult code = encoded(part, encoded);
    if (code == CUDA_SUCCESS) continue;
    Failure failure;
    failure.effect = &effect;
    failure.code = code;
    failure.what = kEncoding;
    return RaiseFailure(failure);
  }
  return true;
}

// Give an array that is not allocated yet a placeholder address, to check its tensor maps.
void Execution::PretendArray(const Effect& effect) {
  ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  if (effect.code == EffectCode::kView) return MakeView(effect, Int(effect.value));
  value.data = reinterpret_cast<char*>(uintptr_t{1} << 20);
  value.base = effect.array;
}

bool Execution::CheckEffects() {
  for (const Effect& effect : program_.blocks[static_cast<size_t>(leaf_)].effects) {
    if (effect.code == EffectCode::kAllocate || effect.code == EffectCode::kView) {
      if (!CheckAllocation(effect)) return false;
      PretendArray(effect);
    } else if (effect.code == EffectCode::kLaunch && !IsSkipped(effect, registers_)) {
      if (!CheckLaunch(effect)) return false;
    }
  }
  return true;
}

}  // namespace function
