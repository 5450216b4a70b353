// culaunch::Graphs: whether a driver's launches go as executable graphs, and all that there are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lock.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

class GraphSlots;
class LaunchGraph;
class LaunchObserver;
struct DriverTable;

enum class GraphMode : int { kOff = 0, kOn = 1, kAuto = 2 };

class Graphs {
 public:
  // Each takes about 0.12 MB of the device's memory (H200, driver 580), which the driver keeps for
  // the next ones: 31 MB at most.
  static constexpr size_t kUsualLimit = 256;
  // Where graphs gain was measured with drivers for CUDA 13.0.
  static constexpr int kMeasuredVersion = 13000;
  // Calls of one form before a graph is made. Making one takes as long as 20 launches save, or 5
  // calls of a function.
  static constexpr int kSingleAfter = 4;
  // Before these, so many calls of a kernel are not looked at: a look costs 0.8 us (H200) where a
  // thousand kernels take turns.
  static constexpr int kUnseen = 4;
  static constexpr int kSeveralAfter = 3;
  // More threads than these at once wait longer for the driver with graphs than without.
  static constexpr int kMostThreads = 4;
  // A graph that was not used for so long gives its place to another one. Kernels that take turns
  // within this time do not take the graphs from each other, however many they are.
  static constexpr int64_t kIdleMilliseconds = 1000;

  // "0", "1", "auto" or, as "auto", nothing; false for anything else.
  static bool Read(const char* text, GraphMode* mode) noexcept;

  // Decide for a driver; `reason` says why.
  void Choose(GraphMode mode, const DriverTable& table, bool is_cuda, int version) noexcept;

  // Whether launches of this driver may go another way than plainly: as graphs, to a recorder, or
  // through an observer.
  bool HasOtherWays() const noexcept { return ways_.load(std::memory_order_relaxed) != 0; }
  // Not while launches are observed: an observer sees each of them.
  bool is_on() const noexcept {
    return (ways_.load(std::memory_order_relaxed) & (kOn | kObserved)) == kOn;
  }
  // Whether some thread records its launches (see LaunchRecorder), or launches are observed.
  bool IsRecording() const noexcept { return ways_.load(std::memory_order_relaxed) >= kRecording; }
  void CountRecordings(int change) noexcept {
    ways_.fetch_add(change * kRecording, std::memory_order_relaxed);
  }
  // The observer that makes the launches of this driver; null without one.
  LaunchObserver* observer() const noexcept {
    return (ways_.load(std::memory_order_relaxed) & kObserved) != 0
               ? observer_.load(std::memory_order_acquire)
               : nullptr;
  }
  // One thread at a time calls this. An observer that is replaced by null may still be called.
  void Observe(LaunchObserver* observer) noexcept {
    if (observer != nullptr) observer_.store(observer, std::memory_order_release);
    const bool is_observed = (ways_.load(std::memory_order_relaxed) & kObserved) != 0;
    if ((observer != nullptr) == is_observed) return;
    ways_.fetch_add(is_observed ? -kObserved : kObserved, std::memory_order_relaxed);
  }
  GraphMode mode() const noexcept { return mode_.load(std::memory_order_relaxed); }
  const char* reason() const noexcept { return reason_.load(std::memory_order_relaxed); }
  int single_after() const noexcept { return single_after_.load(std::memory_order_relaxed); }
  int several_after() const noexcept { return several_after_.load(std::memory_order_relaxed); }
  size_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  void set_limit(size_t limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }
  size_t count() noexcept;

  // Whether one more thread may launch a graph now; it must leave then.
  bool Enter() noexcept {
    if (threads_.fetch_add(1, std::memory_order_relaxed) < kMostThreads) return true;
    Leave();
    return false;
  }
  void Leave() noexcept { threads_.fetch_sub(1, std::memory_order_relaxed); }

  // A graph, and its owner. The lock of the slots also guards the graph.
  struct Entry {
    LaunchGraph* graph;
    GraphSlots* slots;
    std::atomic<bool>* is_used;
    int64_t unused_since;  // in milliseconds: when that was last set back
  };

  // Count a new graph. If there is no room, evict the least recently used one.
  // False: each of the few that were looked at was used.
  inline bool Admit(Entry entry);
  void Remove(const LaunchGraph* graph) noexcept;
  // Destroy the graphs that launch a kernel, or all of them if it is null.
  inline void Drop(const void* kernel) noexcept;

 private:
  static constexpr int kOn = 1;
  static constexpr int kRecording = 2;
  static constexpr int kObserved = 1 << 24;  // more than there are threads that record
  static constexpr size_t kLooks = 8;

  static int64_t Milliseconds() noexcept;

  // The reason why graphs are off; null if there is none.
  static const char* Against(GraphMode mode, const DriverTable& table, bool is_cuda,
                             int version) noexcept;

  void RemoveLocked(const LaunchGraph* graph) noexcept;

  std::atomic<int> ways_{0};  // kOn, kObserved, and kRecording for each thread that records
  std::atomic<LaunchObserver*> observer_{nullptr};
  std::atomic<int> single_after_{0};
  std::atomic<int> several_after_{0};
  std::atomic<int> threads_{0};
  std::atomic<GraphMode> mode_{GraphMode::kAuto};
  std::atomic<const char*> reason_{""};
  std::atomic<size_t> limit_{kUsualLimit};
  Mutex mutex_;
  std::vector<Entry> all_;
  size_t hand_ = 0;
};

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/graphs.h"
#endif
