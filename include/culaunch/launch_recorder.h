// culaunch::LaunchRecorder: takes what a thread launches, instead of the device.
#pragma once

#include <cuda.h>

#include <memory>

#include "driver_table.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

class KernelState;
struct GraphNode;

class LaunchRecorder {
 public:
  // `ordinal` is the launch's device; -1: that of its stream.
  virtual CUresult TakeLaunch(KernelState& kernel, const CUlaunchConfig& config, int ordinal,
                              void** arguments) noexcept = 0;
  // A copy, a fill or whatever else a node of a graph is.
  virtual CUresult TakeNode(std::unique_ptr<GraphNode> node) noexcept = 0;

  // That of this thread; null where it launches. Graphs::IsRecording is cheaper to ask, first.
  static LaunchRecorder* Current() noexcept { return Place(); }

 protected:
  ~LaunchRecorder() = default;
  static LaunchRecorder* Exchange(LaunchRecorder* recorder) noexcept {
    LaunchRecorder* const before = Place();
    Place() = recorder;
    return before;
  }

 private:
  static LaunchRecorder*& Place() noexcept {
    static thread_local LaunchRecorder* current = nullptr;
    return current;
  }
};

CULAUNCH_NAMESPACE_END
