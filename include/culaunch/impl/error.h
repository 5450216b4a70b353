// What error.h declares.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "../error.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// The caller decides: a library with exceptions may serve files without them.
CULAUNCH_INLINE void Raise(const Error& error, bool can_throw) {
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
  if (can_throw) throw Error(error);
#else
  static_cast<void>(can_throw);
#endif
  std::fprintf(stderr, "culaunch: %s\n", error.what());
  std::abort();
}

}  // namespace detail

CULAUNCH_INLINE Status::Status(const Error& error) : error_(std::make_unique<Error>(error)) {}

CULAUNCH_NAMESPACE_END
