// culaunch::CompileError: a compiler or a linker refused its input.
#pragma once

#include <string>
#include <utility>

#include "../error.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

// The compiler refused a source, an option or a name expression, or the linker an image.
class CompileError : public Error {
 public:
  CompileError(const std::string& what, std::string log)
      : Error(ErrorKind::kCall, CUDA_ERROR_INVALID_SOURCE, "CUDA_ERROR_INVALID_SOURCE", what),
        log_(std::move(log)) {}

  // The compiler's whole log.
  const std::string& log() const noexcept { return log_; }

 private:
  std::string log_;
};

CULAUNCH_NAMESPACE_END
