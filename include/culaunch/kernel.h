// culaunch::Kernel: a kernel of a module, and the calls that launch it.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "argument.h"
#include "driver.h"
#include "explain.h"
#include "guard.h"
#include "kernel_state.h"
#include "launch_config.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// A kernel of a module. Cheap to copy; valid as long as its module.
class Kernel {
 public:
  explicit Kernel(KernelState* state) noexcept : state_(state) {}

  const std::string& name() const noexcept { return state_->name(); }
  const std::vector<Parameter>& parameters() const noexcept { return state_->parameters(); }
  CUkernel handle() const noexcept { return state_->handle(); }
  KernelState& state() const noexcept { return *state_; }

  // Launch with a pointer to each argument, on the stream's device (see Stream). Nothing is
  // checked; the driver's code comes back.
  CUresult Launch(void** arguments, Dim3 grid, Dim3 block, Stream stream,
                  uint32_t shared_memory = 0) const noexcept {
    return Launch(arguments, LaunchConfig(grid, block, shared_memory, stream));
  }

  CUresult Launch(void** arguments, const LaunchConfig& config) const noexcept {
    // The copy keeps the configuration of the usual case in registers: its address goes nowhere.
    if (CULAUNCH_UNLIKELY(config.HasAttributes())) {
      return LaunchWithAttributes(arguments, LaunchConfig(config));
    }
    return state_->Launch(config.Plain(), config.stream.device, arguments);
  }

  // Launch with the arguments themselves. Their number and sizes must be the kernel's, and their
  // types of the parameters' kinds where the image says them (compared once for each list of
  // types); an error says what is wrong with the call.
  template <class... Arguments>
  void operator()(const LaunchConfig& config, const Arguments&... arguments) const {
    (detail::RequireArgument<Arguments>(), ...);
    // Its address stands for this list of types.
    static constexpr ArgumentType types[] = {detail::TypeOfArgument<Arguments>()...,
                                             ArgumentType{}};
    if (CULAUNCH_UNLIKELY(!state_->HasChecked(types))) {
      CheckArguments(types, sizeof...(Arguments));
      state_->SetChecked(types);
    }
    void* pointers[sizeof...(Arguments) + 1] = {detail::AddressOfArgument(arguments)...};
    const CUresult code = Launch(pointers, config);
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) Throw(code, LaunchConfig(config));
  }

  // Throw what a failed launch means.
  [[noreturn]] void Throw(CUresult code, const LaunchConfig& config) const {
    config.Validate();
    int ordinal = config.stream.device;
    if (ordinal < 0) StreamDevice(state_->driver(), config.stream.handle, &ordinal);
    throw ExplainLaunch(state_->driver(), handle(), Demangle(name()), AllAttributes(config).get(),
                        ordinal, code);
  }

 private:
  // What contradicts the grid, or itself, is not for the driver to find.
  CUresult LaunchWithAttributes(void** arguments, const LaunchConfig& config) const noexcept {
    if (!config.IsPossible()) return CUDA_ERROR_INVALID_VALUE;
    const AllAttributes all(config);
    const CUresult code = state_->Launch(all.get(), config.stream.device, arguments);
    all.WriteBack();
    return code;
  }

  void CheckArguments(const ArgumentType* given, size_t count) const {
    const std::vector<Parameter>& expected = parameters();
    if (count != expected.size()) {
      throw Error(Demangle(name()) + " takes " + std::to_string(expected.size()) +
                  " arguments (got " + std::to_string(count) + ")");
    }
    const std::vector<ParameterType>& types = state_->Types();
    for (size_t i = 0; i < count; ++i) {
      const std::string type = types.empty() ? "" : types[i].text();
      if (given[i].size != expected[i].size) {
        throw Error(Prefix(i) + " must be " + std::to_string(expected[i].size) + " bytes long" +
                    (type.empty() ? "" : ", for it is " + type) + " (got " +
                    std::to_string(given[i].size) + ", " + ArgumentName(given[i]) +
                    "): pass a value of the parameter's own type");
      }
      if (!types.empty() && !types[i].Takes(given[i].kind)) {
        throw Error(Prefix(i) + " must be " + type + " (got " + ArgumentName(given[i]) +
                    "): pass a value of that type; a struct of that size is passed as it is");
      }
    }
  }

  std::string Prefix(size_t argument) const {
    return "argument " + std::to_string(argument) + " of " + Demangle(name());
  }

  KernelState* state_;
};

CULAUNCH_NAMESPACE_END
