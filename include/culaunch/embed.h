// Images that are part of the program: declared by a macro, loaded at first use, never unloaded.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

#include "driver.h"
#include "error.h"
#include "guard.h"
#include "kernel.h"
#include "module.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// A module for the life of the process: a destructor at exit would run after the driver's own.
inline Module& LoadEmbedded(const char* name, const void* bytes, size_t size) {
  try {
    // The first use may come under graph capture, in which loading is not allowed by itself.
    const RelaxedCaptureGuard relaxed(Driver::Get());
    return *new Module(bytes, size);
  } catch (const Error& error) {
    throw Error(error.kind(), error.code(), error.name(),
                "embedded image \"" + std::string(name) + "\": " + error.what());
  }
}

// A pointer has no size: only an array is accepted.
template <class Byte, size_t kSize>
Module& LoadEmbeddedArray(const char* name, const Byte (&bytes)[kSize]) {
  static_assert(sizeof(Byte) == 1, "CULAUNCH_EMBED_CUBIN_FROM_BYTES takes an array of bytes");
  return LoadEmbedded(name, bytes, kSize);
}

}  // namespace detail

CULAUNCH_NAMESPACE_END

// Declare the image that `culaunch embed --name name` (culaunch.embed, culaunch_add_kernels) puts
// into this object or library. Once in a source file, outside of functions.
#define CULAUNCH_EMBED_CUBIN(name)                                         \
  extern "C" {                                                             \
  CULAUNCH_HIDDEN extern const unsigned char culaunch_image_##name[];      \
  CULAUNCH_HIDDEN extern const unsigned long long culaunch_size_##name;    \
  }                                                                        \
  CULAUNCH_EMBEDDED_MODULE(                                                \
      name, ::culaunch::detail::LoadEmbedded(#name, culaunch_image_##name, \
                                             static_cast<size_t>(culaunch_size_##name)))

// The same for an image in an array of bytes, as #embed and bin2c make it.
#define CULAUNCH_EMBED_CUBIN_FROM_BYTES(name, array) \
  CULAUNCH_EMBEDDED_MODULE(name, ::culaunch::detail::LoadEmbeddedArray(#name, array))

// The culaunch::Module of an embedded image. It is loaded by the first use, by whatever thread; a
// failure is thrown, and the next use tries again.
#define CULAUNCH_GET_MODULE(name) (CulaunchEmbedded_##name::Get())

// The culaunch::Kernel of that name (a literal), looked up once.
#define CULAUNCH_GET_KERNEL(name, kernel_name)                                                    \
  ([]() -> const ::culaunch::Kernel& {                                                            \
    static const ::culaunch::Kernel kernel = CULAUNCH_GET_MODULE(name).GetKernel("" kernel_name); \
    return kernel;                                                                                \
  }())

#define CULAUNCH_EMBEDDED_MODULE(name, load)      \
  namespace {                                     \
  struct CulaunchEmbedded_##name {                \
    static ::culaunch::Module& Get() {            \
      static ::culaunch::Module& module = (load); \
      return module;                              \
    }                                             \
  };                                              \
  }                                               \
  static_assert(true, "a semicolon ends the macro")
