// culaunch::Kernel: a kernel of a module, and the calls that launch it.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "argument.h"
#include "driver.h"
#include "error.h"
#include "explain.h"
#include "guard.h"
#include "kernel_state.h"
#include "launch_config.h"
#include "text.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

class Arguments;

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

  // Launch with a list of arguments that was made at run time, checked like a call (arguments.h).
  void Launch(const LaunchConfig& config, const Arguments& arguments) const;
  Status TryLaunch(const LaunchConfig& config, const Arguments& arguments) const;

  // Launch with the arguments themselves. Their number and sizes must be the kernel's, and their
  // types of the parameters' kinds where the image says them (compared once for each list of
  // types); an error says what is wrong with the call.
  template <class... Arguments>
  void operator()(const LaunchConfig& config, const Arguments&... arguments) const {
    const CUresult code = LaunchChecked(config, arguments...);
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      StatusOfCall<Arguments...>(code, LaunchConfig(config)).OrThrow();
    }
  }

  // The same for programs without exceptions. Nothing is allocated for success.
  template <class... Arguments>
  Status TryLaunch(const LaunchConfig& config, const Arguments&... arguments) const {
    const CUresult code = LaunchChecked(config, arguments...);
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      return StatusOfCall<Arguments...>(code, LaunchConfig(config));
    }
    return {};
  }

  // What a code from Launch means.
  Status StatusOf(CUresult code, const LaunchConfig& config) const {
    if (code == CUDA_SUCCESS) return {};
    if (Status possible = config.Check(); !possible) return possible;
    int ordinal = config.stream.device;
    if (ordinal < 0) StreamDevice(state_->driver(), config.stream.handle, &ordinal);
    return ExplainLaunch(state_->driver(), handle(), Demangle(name()), AllAttributes(config).get(),
                         ordinal, code);
  }

  // Throw what a failed launch means.
  [[noreturn]] void Throw(CUresult code, const LaunchConfig& config) const {
    StatusOf(code, config).OrThrow();
    detail::Raise(Error("Kernel::Throw was given CUDA_SUCCESS"));
  }

 private:
  // Its address stands for a list of types.
  template <class... Arguments>
  static constexpr ArgumentType kTypes[] = {detail::TypeOfArgument<Arguments>()..., ArgumentType{}};

  template <class... Arguments>
  CUresult LaunchChecked(const LaunchConfig& config, const Arguments&... arguments) const {
    (detail::RequireArgument<Arguments>(), ...);
    if (CULAUNCH_UNLIKELY(!state_->HasChecked(kTypes<Arguments...>))) {
      if (!CheckArguments(kTypes<Arguments...>, sizeof...(Arguments)).empty()) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      state_->SetChecked(kTypes<Arguments...>);
    }
    void* pointers[sizeof...(Arguments) + 1] = {detail::AddressOfArgument(arguments)...};
    return Launch(pointers, config);
  }

  template <class... Arguments>
  Status StatusOfCall(CUresult code, const LaunchConfig& config) const {
    const std::string problem = CheckArguments(kTypes<Arguments...>, sizeof...(Arguments));
    return problem.empty() ? StatusOf(code, config) : Status(Error(problem));
  }

  // What contradicts the grid, or itself, is not for the driver to find.
  CUresult LaunchWithAttributes(void** arguments, const LaunchConfig& config) const noexcept {
    if (!config.IsPossible()) return CUDA_ERROR_INVALID_VALUE;
    const AllAttributes all(config);
    const CUresult code = state_->Launch(all.get(), config.stream.device, arguments);
    all.WriteBack();
    return code;
  }

  // What is wrong with the arguments of a call; empty where nothing is.
  std::string CheckArguments(const ArgumentType* given, size_t count) const {
    const std::vector<Parameter>& expected = parameters();
    if (count != expected.size()) {
      return Demangle(name()) + " takes " + detail::ToText(expected.size()) + " arguments (got " +
             detail::ToText(count) + ")";
    }
    const std::vector<ParameterType>& types = state_->Types();
    for (size_t i = 0; i < count; ++i) {
      const std::string type = types.empty() ? "" : types[i].text();
      if (given[i].size != expected[i].size) {
        return Prefix(i) + " must be " + detail::ToText(expected[i].size) + " bytes long" +
               (type.empty() ? "" : ", for it is " + type) + " (got " +
               detail::ToText(given[i].size) + ", " + ArgumentName(given[i]) +
               "): pass a value of the parameter's own type";
      }
      if (!types.empty() && !types[i].Takes(given[i].kind)) {
        return Prefix(i) + " must be " + type + " (got " + ArgumentName(given[i]) +
               "): pass a value of that type; a struct of that size is passed as it is";
      }
    }
    return "";
  }

  std::string Prefix(size_t argument) const {
    return "argument " + detail::ToText(argument) + " of " + Demangle(name());
  }

  KernelState* state_;
};

CULAUNCH_NAMESPACE_END
