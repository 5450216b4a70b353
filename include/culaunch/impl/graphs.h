// What graphs.h declares: when graphs are on, and the list of all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "../driver_table.h"
#include "../graphs.h"
#include "../launch_graph.h"
#include "../lock.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

inline bool IsSet(const char* name) noexcept {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' && std::strcmp(text, "0") != 0;
}

}  // namespace detail

CULAUNCH_INLINE bool Graphs::Read(const char* text, GraphMode* mode) noexcept {
  *mode = GraphMode::kAuto;
  if (text == nullptr || *text == '\0' || std::strcmp(text, "auto") == 0) return true;
  *mode = *text == '1' ? GraphMode::kOn : GraphMode::kOff;
  return (*text == '0' || *text == '1') && text[1] == '\0';
}

CULAUNCH_INLINE void Graphs::Choose(GraphMode mode, const DriverTable& table, bool is_cuda,
                                    int version) noexcept {
  const char* against = Against(mode, table, is_cuda, version);
  mode_.store(mode, std::memory_order_relaxed);
  reason_.store(against != nullptr       ? against
                : mode == GraphMode::kOn ? "chosen"
                                         : "the driver's graphs were measured to be faster",
                std::memory_order_relaxed);
  const bool is_auto = mode == GraphMode::kAuto;
  several_after_.store(is_auto ? kSeveralAfter : 0, std::memory_order_relaxed);
  single_after_.store(is_auto ? kSingleAfter : 0, std::memory_order_relaxed);
  const bool is_on_now = against == nullptr;
  const bool is_on = (ways_.load(std::memory_order_relaxed) & kOn) != 0;
  if (is_on_now != is_on) ways_.fetch_add(is_on_now ? kOn : -kOn, std::memory_order_relaxed);
}

CULAUNCH_INLINE const char* Graphs::Against(GraphMode mode, const DriverTable& table, bool is_cuda,
                                            int version) noexcept {
  if (mode == GraphMode::kOff) return "switched off";
  if (!LaunchGraph::IsPossible(table)) return "the driver lacks their functions";
  if (mode == GraphMode::kOn) return nullptr;
  if (!is_cuda) return "this driver has no GPU, so graphs save nothing";
  if (version < kMeasuredVersion) {
    return "the driver is older than CUDA 13.0, where graphs were not measured";
  }
  if (detail::IsSet("CUDA_LAUNCH_BLOCKING")) return "CUDA_LAUNCH_BLOCKING is set";
  // Nsight Systems shows a graph as one item unless it is told otherwise.
  if (detail::IsSet("CUDA_INJECTION64_PATH") || detail::IsSet("NSYS_PROFILING_SESSION_ID")) {
    return "a profiler or a sanitizer is in the process";
  }
  return nullptr;
}

CULAUNCH_INLINE size_t Graphs::count() noexcept {
  const LockGuard lock(mutex_);
  return all_.size();
}

CULAUNCH_INLINE void Graphs::Remove(const LaunchGraph* graph) noexcept {
  const LockGuard lock(mutex_);
  RemoveLocked(graph);
}

CULAUNCH_INLINE void Graphs::RemoveLocked(const LaunchGraph* graph) noexcept {
  for (size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].graph != graph) continue;
    all_[i] = all_.back();
    all_.pop_back();
    return;
  }
}

CULAUNCH_INLINE int64_t Graphs::Milliseconds() noexcept {
  std::timespec now = {};
  std::timespec_get(&now, TIME_UTC);
  const int64_t seconds = now.tv_sec;
  return seconds * 1000 + now.tv_nsec / 1000000;
}

CULAUNCH_NAMESPACE_END
