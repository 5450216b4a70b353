// culaunch::LaunchObserver: makes the launches of a driver, and sees how they go.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

class Graph;
class KernelState;

// It outlives the driver's launches: a thread may have read its address before it was taken away.
class LaunchObserver {
 public:
  // Make a launch with KernelOnDevices::Launch, and return its result.
  virtual CUresult Launch(KernelState& kernel, const CUlaunchConfig& config, int ordinal,
                          void** arguments) noexcept = 0;
  // Likewise for a launch of a graph. Its context is current.
  virtual CUresult LaunchGraph(const Graph& graph, CUgraphExec executable,
                               CUstream stream) noexcept = 0;
  // The arrays that this thread's last launch was given have this many bytes, if it launched that
  // kernel.
  virtual void NoteBytes(const KernelState& kernel, int64_t bytes) noexcept = 0;

 protected:
  ~LaunchObserver() = default;
};

CULAUNCH_NAMESPACE_END
