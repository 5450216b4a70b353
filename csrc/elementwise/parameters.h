// The parameters of a generated kernel, written in order.
#pragma once

#include <cstring>

#include "elementwise/layout.h"
#include "launch/kernel_object.h"
#include "python/small_buffer.h"

namespace elementwise {

// Fills a kernel's parameters in order.
class ParameterWriter {
 public:
  explicit ParameterWriter(const KernelObject& kernel)
      : kernel_(kernel), block_(kernel.bytes), pointers_(kernel.count) {}

  // The place of the next parameter. If the kernel's has another size, this notes that, and returns
  // scratch memory.
  unsigned char* Next(size_t size) {
    if (next_ == kernel_.count || kernel_.slots[next_].size != size) {
      is_wrong_ = true;
      return scratch_;
    }
    unsigned char* target = block_.data() + kernel_.slots[next_].offset;
    pointers_.data()[next_++] = target;
    return target;
  }

  template <class T>
  void Put(const T& value) {
    std::memcpy(Next(sizeof value), &value, sizeof value);
  }

  // An index in the width that the kernel uses.
  void PutIndex(int64_t value, bool wide) {
    if (wide) {
      Put(value);
    } else {
      Put(static_cast<int32_t>(value));
    }
  }

  size_t NextSize() const { return next_ < kernel_.count ? kernel_.slots[next_].size : 0; }
  bool IsComplete() const { return !is_wrong_ && next_ == kernel_.count; }
  void** pointers() { return pointers_.data(); }

 private:
  const KernelObject& kernel_;
  size_t next_ = 0;
  bool is_wrong_ = false;
  alignas(16) unsigned char scratch_[16];
  SmallBuffer<unsigned char, 1024, 16> block_;
  SmallBuffer<void*, 128> pointers_;
};

// Write sizes and strides, in the order of culaunch._elementwise.strided and tiled. Returns the
// number of blocks.
uint64_t PutLayout(ParameterWriter* writer, const Problem& problem, const LayoutKey& key,
                   uint32_t unroll);

}  // namespace elementwise
