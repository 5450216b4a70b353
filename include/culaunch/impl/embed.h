// What embed.h declares: the images of this library, each loaded once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "../driver.h"
#include "../embed.h"
#include "../error.h"
#include "../guard.h"
#include "../kernel.h"
#include "../lock.h"
#include "../module.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// An image of this library, which is loaded once however many files use it. Hidden like all of
// culaunch: another library's images are its own.
struct EmbeddedImage {
  EmbeddedImage(const void* own_bytes, EmbeddedImage* next_image) noexcept
      : bytes(own_bytes), next(next_image) {}

  const void* bytes;
  EmbeddedImage* next;
  Mutex mutex;
  std::unique_ptr<Module> module;
  long users = 0;  // without a user it is unloaded

  // Let go of the module; the last user unloads it.
  void Leave() noexcept {
    const LockGuard lock(mutex);
    if (--users == 0) module.reset();
  }
};

// All of them, until UnloadLibrary(). No destructor: at exit it would run after the driver's own.
struct EmbeddedImages {
  Mutex mutex;
  EmbeddedImage* first = nullptr;

  static EmbeddedImages& All() noexcept {
    static EmbeddedImages all;
    return all;
  }

  EmbeddedImage& Find(const void* bytes) {
    const LockGuard lock(mutex);
    for (EmbeddedImage* image = first; image != nullptr; image = image->next) {
      if (image->bytes == bytes) return *image;
    }
    return *(first = new EmbeddedImage(bytes, first));
  }

  void DeleteAll() noexcept {
    const LockGuard lock(mutex);
    while (first != nullptr) delete std::exchange(first, first->next);
  }
};

// Become a user of an image; the first one loads it.
inline Result<EmbeddedImage*> EnterEmbedded(const char* name, const void* bytes, size_t size) {
  EmbeddedImage& image = EmbeddedImages::All().Find(bytes);
  const LockGuard lock(image.mutex);
  if (image.module == nullptr) {
    const Result<Driver*> driver = Driver::TryGet();
    if (!driver) return driver.error();
    // The first use may come under graph capture, in which loading is not allowed by itself.
    const RelaxedCaptureGuard relaxed(**driver);
    Result<Module> loaded = Module::TryLoad(bytes, size, {}, **driver);
    if (!loaded) {
      const Error& error = loaded.error();
      return Error(error.kind(), error.code(), error.name(),
                   "embedded image \"" + std::string(name) + "\": " + error.what());
    }
    image.module = std::make_unique<Module>(std::move(*loaded));
  }
  ++image.users;
  return &image;
}

CULAUNCH_INLINE Module& LoadEmbedded(const char* name, const void* bytes, size_t size) {
  return *EnterEmbedded(name, bytes, size).OrThrow()->module;
}

CULAUNCH_INLINE Kernel EmbeddedKernel(const char* name, const void* bytes, size_t size,
                                      const char* kernel) {
  return LoadEmbedded(name, bytes, size).GetKernel(kernel);
}

}  // namespace detail

CULAUNCH_INLINE Result<SharedModule> SharedModule::TryUse(const char* name, const void* bytes,
                                                          size_t size) {
  const Result<detail::EmbeddedImage*> image = detail::EnterEmbedded(name, bytes, size);
  if (!image) return image.error();
  return SharedModule(*image);
}

CULAUNCH_INLINE Module& SharedModule::operator*() const noexcept {
  static Module none;
  return image_ != nullptr ? *image_->module : none;
}

CULAUNCH_INLINE void SharedModule::Leave() noexcept { image_->Leave(); }

CULAUNCH_INLINE void UnloadLibrary() noexcept {
  detail::EmbeddedImages::All().DeleteAll();
  Driver::CloseDefault();
}

CULAUNCH_NAMESPACE_END
