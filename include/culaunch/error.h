// culaunch::Error: what went wrong, in words, with the driver's code; and Status and Result, which
// carry it if nothing is thrown.
#pragma once

#include <cuda.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// The party that has to act on an error.
enum class ErrorKind {
  kCall,      // the call is wrong: an argument, a name, an image, a launch configuration
  kType,      // an argument has another type than the parameter: a TypeError in Python
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

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
constexpr bool kHasExceptions = true;
#else
constexpr bool kHasExceptions = false;
#endif

namespace detail {

// Throw `error`, or say it and end the process, as the standard library does.
[[noreturn]] void Raise(const Error& error, bool can_throw);

// Programs without exceptions call what returns a Status.
[[noreturn]] inline void Raise(const Error& error) { Raise(error, kHasExceptions); }

}  // namespace detail

// Whether a call succeeded, and the error if not. Success allocates nothing.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(const Error& error);

  bool ok() const noexcept { return error_ == nullptr; }
  explicit operator bool() const noexcept { return ok(); }
  CUresult code() const noexcept { return ok() ? CUDA_SUCCESS : error_->code(); }
  // "" if it is ok.
  const char* what() const noexcept { return ok() ? "" : error_->what(); }
  // Only for a failure.
  const Error& error() const noexcept { return *error_; }

  void OrThrow() const {
    if (!ok()) detail::Raise(*error_);
  }

 private:
  std::unique_ptr<Error> error_;
};

// The value that a call gives, or the error that kept it from it.
template <class Value>
class [[nodiscard]] Result {
 public:
  // By reference to a member that may be moved from, because nvcc moves a local variable into
  // nothing else.
  Result(Value&& value) : has_value_(true), value_(std::move(value)) {}
  Result(const Error& error) : status_(error) {}
  Result(Status&& status) : status_(std::move(status)) {}
  Result(Result&& other) : status_(std::move(other.status_)), has_value_(other.has_value_) {
    if (has_value_) new (&value_) Value(std::move(other.value_));
  }
  Result& operator=(Result&&) = delete;
  ~Result() {
    if (has_value_) value_.~Value();
  }

  bool ok() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return ok(); }
  CUresult code() const noexcept { return status_.code(); }
  const char* what() const noexcept { return status_.what(); }
  const Error& error() const noexcept { return status_.error(); }

  // Only for a success.
  Value& operator*() noexcept { return value_; }
  const Value& operator*() const noexcept { return value_; }
  Value* operator->() noexcept { return &value_; }
  const Value* operator->() const noexcept { return &value_; }

  Value OrThrow() && {
    status_.OrThrow();
    return std::move(value_);
  }

 private:
  Status status_;
  bool has_value_ = false;
  union {  // std::optional takes a compiler ten times as long
    Value value_;
  };
};

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/error.h"
#endif
