// What kernel.h declares: checks of a call, and the words for one that failed.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <utility>

#include "../argument.h"
#include "../argument_check.h"
#include "../array_argument.h"
#include "../demangle.h"
#include "../error.h"
#include "../explain.h"
#include "../guard.h"
#include "../kernel.h"
#include "../launch_config.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

inline Error EmptyKernel() {
  return Error(ErrorKind::kCall, CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE",
               "the kernel is empty: assign one of a module first, kernel = module[\"name\"]");
}

}  // namespace detail

CULAUNCH_INLINE Status Kernel::StatusOf(CUresult code, const LaunchConfig& config) const {
  if (code == CUDA_SUCCESS) return {};
  if (state_->IsOfNone()) return detail::EmptyKernel();
  if (Status possible = config.Check(); !possible) return possible;
  int ordinal = config.stream.device;
  if (ordinal < 0) StreamDevice(state_->driver(), config.stream.handle, &ordinal);
  return ExplainLaunch(state_->driver(), handle(), Demangle(name()), AllAttributes(config).get(),
                       ordinal, code);
}

CULAUNCH_INLINE Status Kernel::StatusOfCall(CUresult code, const LaunchConfig& config,
                                            const ArgumentType* types,
                                            const ArrayArgument* const* arrays,
                                            size_t count) const {
  Status status = CheckArguments(config.stream, types, arrays, count);
  return status ? StatusOf(code, config) : std::move(status);
}

CULAUNCH_INLINE Status Kernel::CheckArguments(Stream stream, const ArgumentType* types,
                                              const ArrayArgument* const* arrays,
                                              size_t count) const {
  if (state_->IsOfNone()) return detail::EmptyKernel();
  return detail::ArgumentCheck(*state_, stream).Run(types, arrays, count);
}

CULAUNCH_INLINE bool Kernel::CheckOnce(Stream stream, const ArgumentType* types,
                                       const ArrayArgument* const* arrays, size_t count) const {
  if (!CheckArguments(stream, types, arrays, count)) return false;
  state_->SetChecked(types);
  return true;
}

CULAUNCH_INLINE void Kernel::ThrowCall(CUresult code, const LaunchConfig& config,
                                       const ArgumentType* types,
                                       const ArrayArgument* const* arrays, size_t count,
                                       bool can_throw) const {
  detail::Raise(StatusOfCall(code, config, types, arrays, count).error(), can_throw);
}

// The driver does not have to find a configuration that contradicts the grid or itself.
CULAUNCH_INLINE CUresult Kernel::LaunchWithAttributes(void** arguments,
                                                      const LaunchConfig& config) const noexcept {
  if (!config.IsPossible()) return CUDA_ERROR_INVALID_VALUE;
  const AllAttributes all(config);
  const CUresult code = state_->Launch(all.get(), config.stream.device, arguments);
  all.WriteBack();
  return code;
}

CULAUNCH_NAMESPACE_END
