// culaunch::Cache: compiled images on the disk, verified on every read. It is Python's cache: an
// entry that one wrote serves the other.
#pragma once

#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../version.h"
#include "base/paths.h"
#include "cache_options.h"
#include "files/lock.h"
#include "files/trusted.h"
#include "store/cache_contents.h"
#include "store/entry.h"
#include "store/image.h"

CULAUNCH_NAMESPACE_BEGIN

// A directory of compiled images, which must belong to the user or to root, and must not be
// writable by others. A failure of the cache never fails a compile. Safe to use from many threads.
class Cache {
 public:
  explicit Cache(CacheOptions options = {}) : options_(std::move(options)) {
    if (options_.path.empty()) options_.path = DefaultPath();
    if (!jit::IsAbsolute(options_.path))
      options_.path = jit::JoinPath(jit::CurrentDirectory(), options_.path);
    options_.path = jit::NormalPath(options_.path);
    if (options_.max_bytes <= 0) options_.max_bytes = DefaultMaxBytes();
    if (!options_.bundles) options_.bundles = DefaultBundles();
  }

  bool enabled() const noexcept { return options_.enabled; }
  const std::string& path() const noexcept { return options_.path; }

  // The image for a key; make and cache it if it is missing. Many threads and processes may ask for
  // a key at the same time, and only one makes it. Exceptions of `make` propagate, and nothing is
  // cached then.
  template <class Make>
  Image GetOrMake(const std::string& key, const Make& make) {
    if (std::optional<Image> image = Lookup(key)) return *std::move(image);
    if (!Open()) return make();
    // The lock is held until the image is in place, so a process that waits finds it there.
    const jit::KeyLock lock(jit::JoinPath(path(), ".lock"), key,
                            std::chrono::duration<double>(options_.lock_timeout));
    // Another may have made it while this one waited for the lock.
    if (const auto directory = Open()) {
      if (std::optional<Image> image = Read(*directory, path(), key, true)) {
        return *std::move(image);
      }
    }
    Image image = make();
    Store(key, image);
    return image;
  }

  // The image of a key if it is there and intact.
  std::optional<Image> Lookup(const std::string& key) {
    if (!enabled()) return std::nullopt;
    if (const auto directory = Open()) {
      if (std::optional<Image> image = Read(*directory, path(), key, true)) return image;
    }
    for (const std::string& bundle : *options_.bundles) {
      try {
        const auto directory = jit::TrustedDirectory::Open(bundle);
        if (std::optional<Image> image = Read(directory, bundle, key, false)) return image;
      } catch (const jit::FileError& error) {
        if (error.code != ENOENT) {
          Warn("the bundle " + bundle + " is not used: " + error.why);
        }
      }
    }
    return std::nullopt;
  }

  void Store(const std::string& key, const Image& image) {
    try {
      Publish(key + ".entry", jit::PackImage(key, image));
    } catch (const jit::FileError& error) {
      Warn("an image was compiled but not cached: " + error.why);
    }
  }

  // An entry that saves work later. Losing it does no harm.
  std::optional<std::string> ReadNote(const std::string& key) {
    const auto directory = enabled() ? Open() : std::nullopt;
    std::string entry;
    jit::FileStatus status;
    if (!directory || !directory->Read(key + ".note", &entry, &status)) return std::nullopt;
    try {
      return jit::UnpackEntry(key, entry).first;
    } catch (const jit::BadEntry&) {
      return std::nullopt;
    }
  }

  void KeepNote(const std::string& key, const std::string& metadata) {
    try {
      if (enabled()) Publish(key + ".note", jit::PackEntry(key, metadata, {}));
    } catch (const jit::FileError&) {
    }
  }

  // A directory in the cache that is private to the user; empty if there is none.
  std::string PrivateDirectory(const std::string& first, const std::string& second) {
    try {
      const std::string directory = jit::JoinPath(jit::JoinPath(path(), first), second);
      jit::TrustedDirectory::Open(path(), true);
      jit::TrustedDirectory::Open(directory, true);
      return directory;
    } catch (const jit::FileError& error) {
      Warn("it has no room for " + first + ": " + error.why);
      return {};
    }
  }

  static std::string DefaultPath() {
    const std::string named = Variable("CULAUNCH_CACHE_DIR");
    if (!named.empty()) return named;
    std::string base = Variable("XDG_CACHE_HOME");
    // The XDG specification has relative paths ignored.
    if (!jit::IsAbsolute(base)) base = jit::JoinPath(Home(), ".cache");
    return jit::JoinPath(base, "culaunch");
  }

  // Report a problem to the program, or on stderr.
  void Report(const std::string& message) const {
    if (options_.warn) {
      options_.warn(message);
    } else {
      std::fprintf(stderr, "culaunch: %s\n", message.c_str());
    }
  }

 private:
  static std::string Variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
  }

  static std::string Home() {
    const std::string home = Variable("HOME");
    return home.empty() ? "/" : home;
  }

  static std::vector<std::string> DefaultBundles() {
    std::vector<std::string> found;
    const std::string all = Variable("CULAUNCH_CACHE_BUNDLES");
    for (size_t start = 0; start <= all.size();) {
      const size_t end = std::min(all.find(':', start), all.size());
      if (end > start) found.push_back(all.substr(start, end - start));
      start = end + 1;
    }
    return found;
  }

  // "512M", "2G": an invalid value causes a warning, and the default is used.
  int64_t DefaultMaxBytes() {
    constexpr int64_t kDefault = int64_t{2} << 30;
    const std::string given = Variable("CULAUNCH_CACHE_MAX_SIZE");
    std::string text(jit::Stripped(given));
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (!text.empty() && text.back() == 'B') text.pop_back();
    if (text.empty()) return kDefault;
    const size_t unit = std::string_view("KMGT").find(text.back());
    if (unit != std::string_view::npos) text.pop_back();
    const bool is_number = !text.empty() && text.size() <= 15 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    const int64_t number = is_number ? std::strtoll(text.c_str(), nullptr, 10) : 0;
    const unsigned shift =
        unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
    if (number != 0 && number <= INT64_MAX >> shift) return number << shift;
    Warn("CULAUNCH_CACHE_MAX_SIZE must be a size such as 512M or 2G (got \"" + given +
         "\"); 2G is used");
    return kDefault;
  }

  // Every use opens and checks it again: another directory may take its place while a program runs.
  std::optional<jit::TrustedDirectory> Open() {
    if (!enabled()) return std::nullopt;
    try {
      try {
        return jit::TrustedDirectory::Open(path());
      } catch (const jit::FileError& error) {
        if (error.code != ENOENT) throw;
        return jit::TrustedDirectory::Open(path(), true);
      }
    } catch (const jit::FileError& error) {
      Warn("it is not used: " + error.why);
      return std::nullopt;
    }
  }

  std::optional<Image> Read(const jit::TrustedDirectory& directory, const std::string& where,
                            const std::string& key, bool is_own) {
    constexpr int64_t kTouch = 1'000'000'000;
    const std::string name = key + ".entry";
    std::string entry;
    jit::FileStatus status;
    if (!directory.Read(name, &entry, &status)) return std::nullopt;
    try {
      Image image = jit::UnpackImage(key, entry);
      // Record a use only of an intact entry: a bad one must not look wanted.
      const int64_t age = jit::NowNanoseconds() - jit::Nanoseconds(status.st_mtim);
      if (is_own && (age > kTouch || age < -kTouch)) directory.Touch(name);
      return image;
    } catch (const jit::BadEntry& bad) {
      if (is_own) Drop(directory, name, status);
      Report("cache entry " + jit::JoinPath(where, name) + " " + bad.why + "; compiling again");
      return std::nullopt;
    }
  }

  // Remove the file that was read, but not one that was put in its place since.
  static void Drop(const jit::TrustedDirectory& directory, const std::string& name,
                   const jit::FileStatus& read) {
    jit::FileStatus now;
    if (directory.Status(name, &now) && now.st_ino == read.st_ino &&
        jit::Nanoseconds(now.st_mtim) == jit::Nanoseconds(read.st_mtim)) {
      directory.Remove(name);
    }
  }

  void Publish(const std::string& name, const std::string& entry) {
    try {
      jit::TrustedDirectory::Open(path(), true).Publish(name, entry);
    } catch (const jit::FileError& error) {
      if (error.code != ENOENT) throw;
      // The whole directory was removed after it was opened.
      jit::TrustedDirectory::Open(path(), true).Publish(name, entry);
    }
    // Keep a running total, to read the directory only if it may be too full. Other processes store
    // entries as well, so compute the total again now and then.
    constexpr int kRecount = 64;
    constexpr int64_t kRecountNanoseconds = int64_t{10} * 1'000'000'000;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (size_) *size_ += static_cast<int64_t>(entry.size());
    const int64_t now = jit::NowNanoseconds();
    const bool is_old =
        ++stored_ % kRecount == 0 || std::abs(now - counted_at_) >= kRecountNanoseconds;
    if (size_ && !is_old && *size_ <= options_.max_bytes) return;
    size_ = jit::CacheContents(path(), jit::CacheContents::kStale).Evict(options_.max_bytes, name);
    counted_at_ = now;
  }

  // Report a problem of the cache once.
  void Warn(const std::string& message) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!warned_.insert(message).second) return;
    }
    Report("cache " + path() + ": " + message);
  }

  CacheOptions options_;
  std::mutex mutex_;
  std::set<std::string> warned_;
  std::optional<int64_t> size_;
  int stored_ = 0;
  int64_t counted_at_ = 0;
};

CULAUNCH_NAMESPACE_END
