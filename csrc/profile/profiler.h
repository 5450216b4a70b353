// The observer that times the launches of a driver while a profile is taken.
#pragma once

#include <culaunch/driver.h>
#include <culaunch/launch_observer.h>
#include <culaunch/lock.h>

#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "profile/context_clock.h"
#include "profile/launch_record.h"

namespace profile {

// One for each driver that was ever profiled, and never freed. Profiles may be nested, and several
// threads may profile at once. Each profile is a range of one log.
class Profiler final : public culaunch::LaunchObserver {
 public:
  static Profiler& Of(culaunch::Driver& driver);

  // The beginning of a profile in the log, and the number of launches omitted before it.
  struct Mark {
    size_t begin;
    size_t omitted;
  };
  // Begin a profile. Once the log has `limit` launches, further launches are only counted.
  Mark Start(size_t limit);

  struct Log {
    std::vector<LaunchedKernel> kernels;
    std::vector<LaunchRecord> launches;
    size_t omitted = 0;  // launches past the limit
  };
  // End the profile that began there: wait for its launches, and return them. The kernels are held
  // for the caller, who releases each with KernelState::Leave.
  Log Stop(const Mark& start);

  // The same as NoteBytes, for any driver and, without one, for any kernel.
  static void NoteLastBytes(const culaunch::KernelState* kernel, int64_t bytes);

  CUresult Launch(culaunch::KernelState& kernel, const CUlaunchConfig& config, int ordinal,
                  void** arguments) noexcept override;
  CUresult LaunchGraph(const culaunch::Graph& graph, CUgraphExec executable,
                       CUstream stream) noexcept override;
  void NoteBytes(const culaunch::KernelState& kernel, int64_t bytes) noexcept override {
    NoteLastBytes(&kernel, bytes);
  }

 private:
  explicit Profiler(culaunch::Driver& driver) : driver_(driver) {}

  // The kernel, the device, the threads and the dynamic shared memory of a block.
  using Key = std::tuple<const culaunch::KernelState*, int, int, unsigned>;

  bool HasRoom();
  // Run a call that launches in the current context.
  template <class Call>
  void Time(LaunchRecord* record, const Call& call);
  // Give a record two events of the current context. False: it cannot be timed.
  bool TakeEvents(LaunchRecord* record);
  void GiveBack(LaunchRecord* record);
  int NumberOf(culaunch::KernelState& kernel, const CUlaunchConfig& config, int ordinal);
  void Ask(LaunchedKernel* kernel) const;
  void Append(LaunchRecord&& record, culaunch::KernelState* kernel, const CUlaunchConfig* config);
  void ReadFinished();
  void Wait(const Mark& start);
  void Clear();

  culaunch::Driver& driver_;
  culaunch::Mutex mutex_;
  int profiles_ = 0;
  size_t limit_ = 0;
  size_t omitted_ = 0;
  size_t clears_ = 0;  // of the log
  std::vector<LaunchedKernel> kernels_;
  std::map<Key, int> numbers_;
  std::vector<std::unique_ptr<ContextClock>> clocks_;
  std::deque<LaunchRecord> log_;
  size_t read_ = 0;  // all launches before this index are read
};

}  // namespace profile
