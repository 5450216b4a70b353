// culaunch::StreamDevices: on which device each stream was last seen.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Whether a stream handle means a default stream, which belongs to the current context.
inline bool IsDefaultStream(CUstream stream) noexcept {
  return reinterpret_cast<uintptr_t>(stream) <= reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD);
}

// A guess that spares a launch its queries to the driver, and never a final answer. The stream may
// have been destroyed since, and a stream of another device may have its handle. Another context
// may be current. The launch uses a function of the guessed device's primary context. The driver
// refuses it if the stream's context (or the current one, for a default stream) is another one
// (CUDA_ERROR_INVALID_HANDLE). Only then is the driver asked.
class StreamDevices {
 public:
  // The ordinal where this stream was last seen; -1 where it is not known.
  int Guess(CUstream stream) const noexcept {
    const uint64_t entry = SlotOf(stream).load(std::memory_order_relaxed);
    return entry >> kOrdinalBits == Key(stream) ? static_cast<int>(entry & kMostOrdinal) - 1 : -1;
  }

  void Remember(CUstream stream, int ordinal) noexcept {
    if (ordinal < 0 || static_cast<uint64_t>(ordinal) >= kMostOrdinal) return;
    SlotOf(stream).store(Key(stream) << kOrdinalBits | static_cast<uint64_t>(ordinal + 1),
                         std::memory_order_relaxed);
  }

  // A launch on a default stream was refused, because threads with different contexts, or without
  // one, take turns. The next launches ask the driver first, so at most one of many is refused.
  void Doubt() noexcept { doubts_.store(kAskedForEachRefusal, std::memory_order_relaxed); }
  bool HasDoubts() const noexcept { return doubts_.load(std::memory_order_relaxed) > 0; }
  // A doubted guess would have been right.
  void Confirm() noexcept { doubts_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  // An entry has the handle without its highest bits, and the ordinal + 1. Two streams in one slot
  // replace each other.
  static constexpr unsigned kOrdinalBits = 7;
  static constexpr uint64_t kMostOrdinal = (uint64_t{1} << kOrdinalBits) - 1;
  static constexpr size_t kSlots = 64;
  static constexpr int kAskedForEachRefusal = 64;

  static uint64_t Key(CUstream stream) noexcept {
    const uint64_t handle = reinterpret_cast<uintptr_t>(stream);
    return handle << kOrdinalBits >> kOrdinalBits;
  }

  std::atomic<uint64_t>& SlotOf(CUstream stream) noexcept { return slots_[IndexOf(stream)]; }
  const std::atomic<uint64_t>& SlotOf(CUstream stream) const noexcept {
    return slots_[IndexOf(stream)];
  }

  static size_t IndexOf(CUstream stream) noexcept {
    const auto handle = reinterpret_cast<uintptr_t>(stream);
    return (handle ^ handle >> 4 ^ handle >> 10) % kSlots;  // handles are aligned addresses
  }

  std::atomic<int> doubts_{0};
  std::atomic<uint64_t> slots_[kSlots] = {};
};

CULAUNCH_NAMESPACE_END
