// culaunch::Error: what went wrong, in words, with the driver's code.
#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Who has to act on an error.
enum class ErrorKind {
  kCall,      // the call is wrong: an argument, a name, an image, a launch configuration
  kDriver,    // the driver failed
  kNoDriver,  // there is no driver, or it is too old
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, CUresult code, std::string name, const std::string& what)
      : std::runtime_error(what), kind_(kind), code_(code), name_(std::move(name)) {}

  // A mistake in a call that no driver function reported.
  explicit Error(const std::string& what)
      : Error(ErrorKind::kCall, CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", what) {}

  ErrorKind kind() const noexcept { return kind_; }
  CUresult code() const noexcept { return code_; }
  // The code's name, such as "CUDA_ERROR_INVALID_VALUE".
  const std::string& name() const noexcept { return name_; }

 private:
  ErrorKind kind_;
  CUresult code_;
  std::string name_;
};

CULAUNCH_NAMESPACE_END
