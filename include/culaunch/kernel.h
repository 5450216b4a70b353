// culaunch::Kernel: a kernel of a module, and the calls that launch it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "argument.h"
#include "array_argument.h"
#include "driver.h"
#include "error.h"
#include "kernel_state.h"
#include "launch_config.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

class Arguments;

// A kernel of a module. Cheap to copy. It does not keep the module loaded: calling it after the
// module was unloaded, or calling an empty handle, is an error.
class Kernel {
 public:
  Kernel() noexcept : Kernel(&KernelState::OfNone()) {}
  explicit Kernel(KernelState* state) noexcept : state_(state) { state_->Enter(); }
  Kernel(const Kernel& other) noexcept : Kernel(other.state_) {}
  Kernel& operator=(const Kernel& other) noexcept {
    other.state_->Enter();
    std::exchange(state_, other.state_)->Leave();
    return *this;
  }
  ~Kernel() { state_->Leave(); }

  // Whether its module is still loaded.
  explicit operator bool() const noexcept { return handle() != nullptr; }

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
    // The copy keeps the configuration of the usual case in registers, because its address does not
    // escape.
    if (CULAUNCH_UNLIKELY(config.HasAttributes())) {
      return LaunchWithAttributes(arguments, LaunchConfig(config));
    }
    return state_->Launch(config.Plain(), config.stream.device, arguments);
  }

  // Launch with a list of arguments that was made at run time, checked like a call (arguments.h).
  void Launch(const LaunchConfig& config, const Arguments& arguments) const;
  Status TryLaunch(const LaunchConfig& config, const Arguments& arguments) const;

  // Launch with the arguments themselves. Their number and sizes must match the kernel's. Their
  // types must match the kinds of the parameters if the image records them (compared once for each
  // list of types). Arrays (ffi::Data, ArrayOf) must have the parameter's element type and be on
  // the launch's device. An error describes the mistake in the call.
  template <class... Arguments>
  void operator()(const LaunchConfig& config, const Arguments&... arguments) const {
    const CUresult code = LaunchChecked(config, arguments...);
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      const ArrayArgument* const arrays[] = {detail::ArrayIn(arguments)..., nullptr};
      ThrowCall(code, LaunchConfig(config), kTypes<Arguments...>, arrays, sizeof...(Arguments),
                kHasExceptions);
    }
  }

  // The same for programs without exceptions. Nothing is allocated for success.
  template <class... Arguments>
  Status TryLaunch(const LaunchConfig& config, const Arguments&... arguments) const {
    const CUresult code = LaunchChecked(config, arguments...);
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      const ArrayArgument* const arrays[] = {detail::ArrayIn(arguments)..., nullptr};
      return StatusOfCall(code, LaunchConfig(config), kTypes<Arguments...>, arrays,
                          sizeof...(Arguments));
    }
    return {};
  }

  // The meaning of a code from Launch.
  Status StatusOf(CUresult code, const LaunchConfig& config) const;

  // Throw the error for a failed launch.
  [[noreturn]] void Throw(CUresult code, const LaunchConfig& config) const {
    StatusOf(code, config).OrThrow();
    detail::Raise(Error("Kernel::Throw was given CUDA_SUCCESS"));
  }

 private:
  // Its address identifies a list of types.
  template <class... Arguments>
  static constexpr ArgumentType kTypes[] = {detail::TypeOfArgument<Arguments>()..., ArgumentType{}};

  template <class... Arguments>
  CUresult LaunchChecked(const LaunchConfig& config, const Arguments&... arguments) const {
    (detail::RequireArgument<Arguments>(), ...);
    if (CULAUNCH_UNLIKELY(!state_->HasChecked(kTypes<Arguments...>))) {
      if (!HasGoodArguments(config.stream, arguments...)) return CUDA_ERROR_INVALID_VALUE;
    }
    if constexpr ((detail::kIsArray<Arguments> || ...)) {
      const uint64_t differs =
          Differences(config.stream, std::index_sequence_for<Arguments...>(), arguments...);
      if (CULAUNCH_UNLIKELY(differs != 0) && !HasGoodArguments(config.stream, arguments...)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      if (CULAUNCH_UNLIKELY(state_->driver().note_array != nullptr)) {
        (detail::NoteIfArray(state_->driver(), arguments), ...);
      }
    }
    void* pointers[sizeof...(Arguments) + 1] = {detail::AddressOfArgument(arguments)...};
    return Launch(pointers, config);
  }

  // The facts that the arrays of a call must not have: 0 means that everything is fine, and
  // anything else needs a closer look.
  template <size_t... kIndex, class... Arguments>
  uint64_t Differences(const Stream& stream, std::index_sequence<kIndex...>,
                       const Arguments&... arguments) const noexcept {
    const detail::ArrayRule* rules = state_->array_rules();
    int ordinal = stream.device;
    ((ordinal = ordinal < 0 ? detail::OrdinalOf(arguments) : ordinal), ...);
    const uint64_t place = state_->PlaceOf(ordinal);
    return (detail::Differences(arguments, rules[kIndex], place) | ...);
  }

  friend class Arguments;

  // Throw the error for a code from LaunchChecked, as detail::Raise does.
  [[noreturn]] void ThrowCall(CUresult code, const LaunchConfig& config, const ArgumentType* types,
                              const ArrayArgument* const* arrays, size_t count,
                              bool can_throw) const;

  // The meaning of a code from LaunchChecked.
  Status StatusOfCall(CUresult code, const LaunchConfig& config, const ArgumentType* types,
                      const ArrayArgument* const* arrays, size_t count) const;

  // The error in the arguments of a call. arrays[i] is the i-th argument if that is an array.
  Status CheckArguments(Stream stream, const ArgumentType* types,
                        const ArrayArgument* const* arrays, size_t count) const;
  // Whether there is none. Types that fit are remembered, by the address of their list.
  bool CheckOnce(Stream stream, const ArgumentType* types, const ArrayArgument* const* arrays,
                 size_t count) const;
  template <class... Arguments>
  bool HasGoodArguments(Stream stream, const Arguments&... arguments) const {
    const ArrayArgument* const arrays[] = {detail::ArrayIn(arguments)..., nullptr};
    return CheckOnce(stream, kTypes<Arguments...>, arrays, sizeof...(Arguments));
  }

  CUresult LaunchWithAttributes(void** arguments, const LaunchConfig& config) const noexcept;

  KernelState* state_;
};

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/kernel.h"
#endif
