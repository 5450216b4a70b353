// The events of one context: pairs around launches, and the times since its first event.
#pragma once

#include <culaunch/driver.h>

#include <vector>

#include "profile/launch_record.h"

namespace profile {

// Hold the profiler's lock for every call.
class ContextClock {
 public:
  ContextClock(culaunch::Driver& driver, CUcontext context, unsigned long long id)
      : driver_(driver), context_(context), id_(id) {}

  CUcontext context() const { return context_; }
  bool Is(CUcontext context, unsigned long long id) const {
    return context == context_ && id == id_;
  }

  // Whether the context still exists. If not, its events were destroyed with it.
  bool IsAlive() const;
  // Give a record two events. The context must be current. False: the driver created none.
  bool TakeEvents(LaunchRecord* record);
  // Return the events of a record for later launches.
  void GiveBack(LaunchRecord* record);
  // Measure times from this event, which is recorded before any other.
  void Begin(CUstream stream);
  // Read the times of a launch. False if its work is not done; the record then stays unchanged.
  bool Read(LaunchRecord* record);
  // Destroy every event. The context must be current.
  void Destroy();

 private:
  CUevent Make() const;

  culaunch::Driver& driver_;
  CUcontext context_;
  unsigned long long id_;  // a later context may reuse this one's address
  CUevent first_ = nullptr;
  std::vector<CUevent> free_;
};

}  // namespace profile
