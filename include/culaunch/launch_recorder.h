// culaunch::LaunchRecorder: receives a thread's launches instead of the device.
#pragma once

#include <cuda.h>

#include <memory>

#include "driver_table.h"
#include "error.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

class KernelState;
struct GraphNode;

class LaunchRecorder {
 public:
  // `ordinal` is the device of the launch; -1: the device of its stream.
  virtual CUresult TakeLaunch(KernelState& kernel, const CUlaunchConfig& config, int ordinal,
                              void** arguments) noexcept = 0;
  // A copy, a fill or whatever else a node of a graph is.
  virtual CUresult TakeNode(std::unique_ptr<GraphNode> node) noexcept = 0;

  // The description of a failure of these, if a code is an error.
  virtual Status StatusOf(CUresult code, const char* what) = 0;

  // The recorder of this thread, or null. Ask Graphs::IsRecording first: it is cheaper.
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
