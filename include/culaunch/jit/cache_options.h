// culaunch::CacheOptions: where compiled images are kept.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

// Anything that is called with a text; empty by default. (The header of std::function alone takes a
// compiler a tenth of a second.)
class MessageFunction {
 public:
  MessageFunction() noexcept = default;
  template <class Callable,
            class = std::enable_if_t<std::is_invocable_v<Callable&, const std::string&>>>
  MessageFunction(Callable callable)
      : callable_(new Callable(std::move(callable))),
        call_([](void* one, const std::string& message) {
          (*static_cast<Callable*>(one))(message);
        }) {}

  explicit operator bool() const noexcept { return call_ != nullptr; }
  void operator()(const std::string& message) const { call_(callable_.get(), message); }

 private:
  std::shared_ptr<void> callable_;
  void (*call_)(void*, const std::string&) = nullptr;
};

// The directory and the size of a cache. The environment supplies the defaults: CULAUNCH_CACHE_DIR,
// CULAUNCH_CACHE_MAX_SIZE, CULAUNCH_CACHE_BUNDLES.
struct CacheOptions {
  bool enabled = true;
  std::string path;
  int64_t max_bytes = 0;
  // Directories that an application ships: read if the cache has no entry, never written to.
  std::optional<std::vector<std::string>> bundles;
  double lock_timeout = 300.0;  // seconds to wait for another process that compiles the same
  // Called with each problem of the cache, which never fails a compile; prints to stderr by
  // default.
  MessageFunction warn;
};

CULAUNCH_NAMESPACE_END
