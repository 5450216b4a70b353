// A buffer whose size is known only at run time. Usual sizes are on the stack.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

// Up to kInline elements need no allocation. Numbers and pointers are not initialized.
template <class T, size_t kInline, size_t kAlignment = alignof(T)>
class SmallBuffer {
 public:
  SmallBuffer() = default;
  explicit SmallBuffer(size_t count) {
    if (count > kInline) Grow(count, 0);
  }
  SmallBuffer(const SmallBuffer&) = delete;
  SmallBuffer& operator=(const SmallBuffer&) = delete;

  // Make room for more; the first `kept` elements stay. Addresses change.
  void Grow(size_t count, size_t kept) {
    if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_alloc();
    std::unique_ptr<T[]> larger(new T[count]);
    std::move(data_, data_ + kept, larger.get());
    large_ = std::move(larger);
    data_ = large_.get();
  }

  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  alignas(kAlignment) T inline_[kInline];
  T* data_ = inline_;
  std::unique_ptr<T[]> large_;
};
