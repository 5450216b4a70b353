// Images that are part of the program: declared by a macro, loaded at first use, never unloaded.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

#include "driver.h"
#include "error.h"
#include "guard.h"
#include "kernel.h"
#include "module.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// An image of this library, once it is loaded. A module for the life of the process: a destructor
// at exit would run after the driver's own.
struct EmbeddedImage {
  std::mutex mutex;
  Module* module = nullptr;
};

// The one entry of an image, by its address: however many files of a library use it, it is loaded
// once. Hidden like all of culaunch: another library's images are its own.
inline EmbeddedImage& FindEmbedded(const void* bytes) {
  static std::mutex mutex;
  static auto& images = *new std::unordered_map<const void*, EmbeddedImage>;
  const std::lock_guard<std::mutex> lock(mutex);
  return images[bytes];
}

inline Module& LoadEmbedded(const char* name, const void* bytes, size_t size) {
  EmbeddedImage& image = FindEmbedded(bytes);
  const std::lock_guard<std::mutex> lock(image.mutex);
  if (image.module != nullptr) return *image.module;
  try {
    // The first use may come under graph capture, in which loading is not allowed by itself.
    const RelaxedCaptureGuard relaxed(Driver::Get());
    image.module = new Module(bytes, size);
    return *image.module;
  } catch (const Error& error) {
    throw Error(error.kind(), error.code(), error.name(),
                "embedded image \"" + std::string(name) + "\": " + error.what());
  }
}

// A pointer has no size: only an array is accepted.
template <class Byte, size_t kSize>
constexpr unsigned long long SizeOfArray(const Byte (&)[kSize]) {
  static_assert(sizeof(Byte) == 1, "CULAUNCH_EMBED_CUBIN_FROM_BYTES takes an array of bytes");
  return kSize;
}

}  // namespace detail

CULAUNCH_NAMESPACE_END

// Declare the image that `culaunch embed --name name` (culaunch.embed, culaunch_add_kernels) puts
// into this object or library. Outside of functions; any number of files may declare it.
#define CULAUNCH_EMBED_CUBIN(name)                                      \
  extern "C" {                                                          \
  CULAUNCH_HIDDEN extern const unsigned char culaunch_image_##name[];   \
  CULAUNCH_HIDDEN extern const unsigned long long culaunch_size_##name; \
  }                                                                     \
  static_assert(true, "a semicolon ends the macro")

// The same for an image in an array of bytes, as #embed and bin2c make it.
#define CULAUNCH_EMBED_CUBIN_FROM_BYTES(name, array)                           \
  [[maybe_unused]] static constexpr const auto& culaunch_image_##name = array; \
  [[maybe_unused]] static constexpr unsigned long long culaunch_size_##name =  \
      ::culaunch::detail::SizeOfArray(array)

// The culaunch::Module of an embedded image. It is loaded by the first use, by whatever thread; a
// failure is thrown, and the next use tries again. (A pointer comes out of the lambda: a reference
// that a temporary gives is one that g++ 13 and newer warn of.)
#define CULAUNCH_GET_MODULE(name)                                                 \
  (*[] {                                                                          \
    static ::culaunch::Module& module = ::culaunch::detail::LoadEmbedded(         \
        #name, culaunch_image_##name, static_cast<size_t>(culaunch_size_##name)); \
    return &module;                                                               \
  }())

// The culaunch::Kernel of that name (a literal), looked up once. It is the kernel's name in the
// image, or a name expression that the image was compiled for.
#define CULAUNCH_GET_KERNEL(name, kernel_name)                                                    \
  (*[] {                                                                                          \
    static const ::culaunch::Kernel kernel = CULAUNCH_GET_MODULE(name).GetKernel("" kernel_name); \
    return &kernel;                                                                               \
  }())
