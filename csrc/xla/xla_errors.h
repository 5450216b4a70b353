// Errors between XLA and Python: none is dropped before its text was read.
#pragma once

#include <string>

#include "python/python.h"
#include "xla/abi.h"

namespace xla_calls {

Error* MakeError(const Api& api, const char* message, int code);

// The Python error that is set, which goes, as XLA's.
Error* TakePythonError(const Api& api);

// The text of an XLA error; the caller's error object is freed.
std::string TakeText(const Api& api, Error* error);

}  // namespace xla_calls
