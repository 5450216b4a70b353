// The building blocks of exported functions (culaunch.ship.export): the arguments of a call,
// numbers by Python's rules, arrays, launches. Needs the headers of apache-tvm-ffi, like
// culaunch/tvm_ffi.h.
#pragma once

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/string.h>

#include "culaunch.h"
#include "function_arguments.h"
#include "function_arrays.h"
#include "function_call.h"
#include "function_errors.h"
#include "function_numbers.h"
#include "tvm_ffi.h"

// Export a function that takes its arguments as they come: void function(const Arguments&, Any*).
#define CULAUNCH_EXPORT_FUNCTION(name, body)                                             \
  extern "C" TVM_FFI_DLL_EXPORT int __tvm_ffi_##name(void*, const TVMFFIAny* arguments,  \
                                                     int32_t count, TVMFFIAny* result) { \
    TVM_FFI_SAFE_CALL_BEGIN();                                                           \
    ::culaunch::function::Run(                                                           \
        body, {#name, reinterpret_cast<const ::tvm::ffi::AnyView*>(arguments), count},   \
        reinterpret_cast<::tvm::ffi::Any*>(result));                                     \
    TVM_FFI_SAFE_CALL_END();                                                             \
  }                                                                                      \
  static_assert(true, "a semicolon ends the macro")
