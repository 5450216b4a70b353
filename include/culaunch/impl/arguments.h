// What arguments.h declares.
#pragma once

#include <cuda.h>

#include <vector>

#include "../arguments.h"
#include "../array_argument.h"
#include "../error.h"
#include "../kernel.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

CULAUNCH_INLINE Status Arguments::CheckFor(const Kernel& kernel, const Stream& stream) const {
  std::vector<const ArrayArgument*> arrays(types_.size(), nullptr);
  for (const auto& [index, array] : arrays_) arrays[index] = &array;
  return kernel.CheckArguments(stream, types_.data(), arrays.data(), types_.size());
}

CULAUNCH_INLINE Status Kernel::TryLaunch(const LaunchConfig& config,
                                         const culaunch::Arguments& arguments) const {
  if (Status checked = arguments.CheckFor(*this, config.stream); !checked) return checked;
  arguments.NoteFor(state().driver());
  const CUresult code = Launch(arguments.pointers(), config);
  return code == CUDA_SUCCESS ? Status() : StatusOf(code, config);
}

CULAUNCH_NAMESPACE_END
