// The memory of one name while it is parsed: bounded, and freed as a whole.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace itanium {

// Thrown for a name that is not mangled, that uses parts of C++ which kernel names do not use, or
// that would cost too much. It never leaves this room.
class Unsupported {};

// Objects in the arena are not destroyed one by one, so their types must be trivial.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  template <class T, class... Arguments>
  T* Make(Arguments&&... arguments) {
    static_assert(std::is_trivially_destructible_v<T>, "an arena destroys nothing");
    return new (Allocate(sizeof(T))) T(std::forward<Arguments>(arguments)...);
  }

  template <class T>
  T* MakeArray(size_t count) {
    static_assert(std::is_trivial_v<T>, "an arena destroys nothing");
    return static_cast<T*>(Allocate(count * sizeof(T)));
  }

  // Concatenate texts.
  std::string_view Concatenate(std::initializer_list<std::string_view> parts) {
    size_t size = 0;
    for (const std::string_view part : parts) size += part.size();
    char* const text = MakeArray<char>(size);
    char* end = text;
    for (const std::string_view part : parts) {
      if (!part.empty()) std::memcpy(end, part.data(), part.size());
      end += part.size();
    }
    return {text, size};
  }

 private:
  static constexpr size_t kAlignment = alignof(std::max_align_t);
  static constexpr size_t kFirst = 8 << 10;  // enough for the names of most kernels
  static constexpr size_t kBlock = 64 << 10;
  // The longest accepted names need a few megabytes. Only names that repeat themselves need more.
  static constexpr size_t kMost = 32 << 20;

  void* Allocate(size_t size) {
    size = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (size > kMost - used_) throw Unsupported();
    used_ += size;
    if (size > static_cast<size_t>(end_ - next_)) AddBlock(size);
    unsigned char* const found = next_;
    next_ += size;
    return found;
  }

  void AddBlock(size_t least) {
    const size_t size = least > kBlock ? least : kBlock;
    blocks_.emplace_back(new unsigned char[size]);
    next_ = blocks_.back().get();
    end_ = next_ + size;
  }

  alignas(kAlignment) unsigned char first_[kFirst];
  unsigned char* next_ = first_;
  unsigned char* end_ = first_ + kFirst;
  size_t used_ = 0;
  std::vector<std::unique_ptr<unsigned char[]>> blocks_;
};

}  // namespace itanium
