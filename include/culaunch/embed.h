// Images that are part of the program. A macro declares them, and they are loaded at first use.
// They are kept for the lifetime of the process, or as long as they are in use.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <utility>

#include "error.h"
#include "kernel.h"
#include "module.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

struct EmbeddedImage;

// A user of an embedded image for the life of the process; the first one loads it.
Module& LoadEmbedded(const char* name, const void* bytes, size_t size);

// A kernel of it.
Kernel EmbeddedKernel(const char* name, const void* bytes, size_t size, const char* kernel);

// A pointer has no size: only an array is accepted.
template <class Byte, size_t kSize>
constexpr unsigned long long SizeOfArray(const Byte (&)[kSize]) {
  static_assert(sizeof(Byte) == 1, "CULAUNCH_EMBED_CUBIN_FROM_BYTES takes an array of bytes");
  return kSize;
}

}  // namespace detail

// A user of an embedded image's module. The first user loads it, the last one unloads it, and the
// next one loads it again. CULAUNCH_GET_MODULE is a user that stays.
class SharedModule {
 public:
  // A user of no image: its module is empty, as after a move.
  SharedModule() noexcept : image_(nullptr) {}
  explicit SharedModule(detail::EmbeddedImage* image) noexcept : image_(image) {}
  SharedModule(SharedModule&& other) noexcept : image_(std::exchange(other.image_, nullptr)) {}
  SharedModule& operator=(SharedModule&& other) noexcept {
    std::swap(image_, other.image_);
    return *this;
  }
  ~SharedModule() {
    if (image_ != nullptr) Leave();
  }

  static Result<SharedModule> TryUse(const char* name, const void* bytes, size_t size);

  Module& operator*() const noexcept;
  Module* operator->() const noexcept { return &**this; }

 private:
  void Leave() noexcept;

  detail::EmbeddedImage* image_;
};

// Give back all that this copy of culaunch holds: the modules of embedded images, the contexts of
// devices, and memory. It is the last thing that a library does with culaunch before dlclose: what
// its macros gave is gone, and its static variables know nothing of that.
void UnloadLibrary() noexcept;

CULAUNCH_NAMESPACE_END

// Declare the image that `culaunch embed --name name` (culaunch.cpp.embed, culaunch_add_kernels)
// puts into this object or library. Outside functions; any number of files may declare it.
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

// The same for those who want it unloaded again: a culaunch::SharedModule, or a Result of one for
// programs without exceptions.
#define CULAUNCH_SHARE_MODULE(name) (CULAUNCH_TRY_SHARE_MODULE(name).OrThrow())
#define CULAUNCH_TRY_SHARE_MODULE(name)                           \
  (::culaunch::SharedModule::TryUse(#name, culaunch_image_##name, \
                                    static_cast<size_t>(culaunch_size_##name)))

// The culaunch::Kernel of that name (a literal), looked up once. It is the kernel's name in the
// image, or a name expression that the image was compiled for.
#define CULAUNCH_GET_KERNEL(name, kernel_name)                                                    \
  (*[] {                                                                                          \
    static const ::culaunch::Kernel kernel = ::culaunch::detail::EmbeddedKernel(                  \
        #name, culaunch_image_##name, static_cast<size_t>(culaunch_size_##name), "" kernel_name); \
    return &kernel;                                                                               \
  }())

#if CULAUNCH_HEADER_ONLY
#include "impl/embed.h"
#endif
