// The records of a profile: one launch, and the kernel that it launched.
#pragma once

#include <culaunch/kernel_state.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace profile {

// Whether the time on the device is known.
enum class TimeState : int {
  kPending,   // its events are still pending
  kTimed,     // known
  kCaptured,  // the launch became a node of a graph, and ran nothing
  kUntimed,   // the driver has no device clock, or no events
  kRefused,   // nothing ran: see `code`
  kLost,      // the events failed: see `code`
};

// A kernel on a device with one block size. The driver provides the numbers; -1 is unknown.
struct LaunchedKernel {
  culaunch::KernelState* state;  // held, so no other kernel gets its address
  int ordinal;
  int threads;
  unsigned dynamic_shared;
  int registers = -1;
  int static_shared = -1;
  int local_bytes = -1;
  int max_threads = -1;
  int active_blocks = -1;  // of a multiprocessor
};

struct LaunchRecord {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int kernel = -1;  // its number; -1: a graph
  std::vector<std::string> graph_kernels;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned shared = 0;
  int ordinal = -1;
  CUstream stream = nullptr;
  unsigned long thread = 0;
  int64_t begin = 0;  // of the driver call, in nanoseconds of the steady clock
  int64_t duration = 0;
  int64_t argument_bytes = -1;  // of its array arguments; -1: not known
  TimeState time = TimeState::kUntimed;
  CUresult code = CUDA_SUCCESS;
  int context = -1;  // the context whose clock measured the device times
  CUevent start = nullptr;
  CUevent end = nullptr;
  double device_begin = kUnknown;  // milliseconds since the first event of its context
  double device_time = kUnknown;   // milliseconds
};

}  // namespace profile
