// Exported functions, and the records of them. culaunch/tvm_ffi.h includes this.
#pragma once

#include <tvm/ffi/function.h>

#include <string>
#include <type_traits>
#include <utility>

#include "error.h"
#include "tensor_notes.h"
#include "tensor_text.h"
#include "tvm_ffi_checks.h"

CULAUNCH_NAMESPACE_BEGIN

namespace ffi {

// Throw what culaunch threw, as an error of TVM-FFI.
[[noreturn]] CULAUNCH_COLD inline void Rethrow(const Error& error) {
  Throw(error.kind() == ErrorKind::kType   ? "TypeError"
        : error.kind() == ErrorKind::kCall ? "ValueError"
                                           : "RuntimeError",
        error.what());
}

// Wraps a function for export: what culaunch throws arrives as the caller's TypeError,
// ValueError or RuntimeError, with its whole message.
template <auto function, class Type = decltype(function)>
struct Exported;

template <auto function, class Result, class... Arguments>
struct Exported<function, Result (*)(Arguments...) noexcept>
    : Exported<function, Result (*)(Arguments...)> {};

template <auto function, class Result, class... Arguments>
struct Exported<function, Result (*)(Arguments...)> {
  static Result Call(Arguments... arguments) {
    const culaunch::detail::TensorNotes notes;
    try {
      return function(std::forward<Arguments>(arguments)...);
    } catch (const Error& error) {
      Rethrow(error);
    }
  }
};

// The schema is a function: it may throw, and one copy of this code catches for all exports.
CULAUNCH_COLD inline int WriteSchema(std::string (*schema)(), const char* parameters,
                                     TVMFFIAny* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  const std::string data = culaunch::detail::FunctionMetadata(schema(), parameters);
  const TVMFFIByteArray bytes{data.data(), data.size()};
  return TVMFFIStringFromByteArray(&bytes, result);
  TVM_FFI_SAFE_CALL_END();
}

// What TVM-FFI records of a function, its types, and the names of its parameters beside them.
template <class Function>
CULAUNCH_COLD int WriteMetadata(const char* parameters, TVMFFIAny* result) {
  using Information = ::tvm::ffi::detail::FunctionInfo<std::decay_t<Function>>;
  return WriteSchema(&Information::TypeSchema, parameters, result);
}

inline int WriteText(const char* text, TVMFFIAny* result) {
  const TVMFFIByteArray bytes{text, std::char_traits<char>::length(text)};
  return TVMFFIStringFromByteArray(&bytes, result);
}

}  // namespace ffi

CULAUNCH_NAMESPACE_END

// Export a function to every framework that speaks TVM-FFI:
//
//   CULAUNCH_EXPORT(name, function);
//   CULAUNCH_EXPORT(name, function, "y, x, factor");
//   CULAUNCH_EXPORT(name, function, "y, x, factor", "Write x times factor to y.");
//
// The names of the parameters and the docstring are for stubs and help; the types are recorded in
// any case.
#define CULAUNCH_EXPORT(...)                                                                    \
  CULAUNCH_FIFTH(__VA_ARGS__, CULAUNCH_EXPORT_4, CULAUNCH_EXPORT_3, CULAUNCH_EXPORT_2, nothing) \
  (__VA_ARGS__)
#define CULAUNCH_FIFTH(a, b, c, d, fifth, ...) fifth
#define CULAUNCH_EXPORT_2(name, function) CULAUNCH_EXPORT_3(name, function, "")
#define CULAUNCH_EXPORT_4(name, function, parameters, text)                                 \
  CULAUNCH_EXPORT_3(name, function, parameters);                                            \
  extern "C" TVM_FFI_DLL_EXPORT int __tvm_ffi__doc_##name(void*, const TVMFFIAny*, int32_t, \
                                                          TVMFFIAny* culaunch_result) {     \
    return ::culaunch::ffi::WriteText(text, culaunch_result);                               \
  }                                                                                         \
  static_assert(true, "a semicolon ends the macro")

// TVM-FFI's own macro records the types only on request, and no names. It also leaves parameters
// unused.
#if defined(TVM_FFI_DLL_EXPORT_TYPED_FUNC_IMPL_)
#define CULAUNCH_EXPORT_3(name, function, parameters)                                             \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wunused-parameter\"")         \
      TVM_FFI_DLL_EXPORT_TYPED_FUNC_IMPL_(name, ::culaunch::ffi::Exported<(function)>::Call)      \
          _Pragma("GCC diagnostic pop") extern "C" TVM_FFI_DLL_EXPORT int                         \
          __tvm_ffi__metadata_##name(void*, const TVMFFIAny*, int32_t,                            \
                                     TVMFFIAny* culaunch_result) {                                \
    return ::culaunch::ffi::WriteMetadata<decltype(::culaunch::ffi::Exported<(function)>::Call)>( \
        parameters, culaunch_result);                                                             \
  }                                                                                               \
  static_assert(true, "a semicolon ends the macro")
#else
#define CULAUNCH_EXPORT_3(name, function, parameters)                                     \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wunused-parameter\"") \
      TVM_FFI_DLL_EXPORT_TYPED_FUNC(name, ::culaunch::ffi::Exported<(function)>::Call)    \
          _Pragma("GCC diagnostic pop") static_assert(true, "a semicolon ends the macro")
#endif
