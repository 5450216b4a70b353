// Conversion of errors between XLA and Python. An error is dropped only after its text was read.
#pragma once

#include <string>

#include "python/python.h"
#include "xla/abi.h"

namespace xla_calls {

Error* MakeError(const Api& api, const char* message, int code);

// Convert the current Python error into an XLA error, and clear it.
Error* TakePythonError(const Api& api);

// The text of an XLA error. This frees the caller's error object.
std::string TakeText(const Api& api, Error* error);

}  // namespace xla_calls
