// The kernels of all libraries that devices ran, as CUPTI records them.
#pragma once

#include <culaunch/jit/toolkit/cuda_places.h>
#include <culaunch/lock.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace profile {

struct DeviceKernel {
  std::string name;  // as in its image
  int32_t grid[3];
  int32_t block[3];
  uint32_t device;
  uint32_t stream;  // CUPTI's number of it
  int registers;
  int32_t static_shared;
  int32_t dynamic_shared;
  uint32_t local_bytes;  // of a thread
  uint64_t begin;        // nanoseconds of CUPTI's clock
  uint64_t end;
};

// One for the process, and never freed: CUPTI's threads call it. Recordings may be nested. Each is
// a range of one log.
class DeviceKernels {
 public:
  // Throws if CUPTI is not installed.
  static DeviceKernels& Get();

  // The start of a recording in the log, and CUPTI's time of it.
  struct Mark {
    size_t begin;
    size_t dropped;
    uint64_t time;
  };
  // Begin a recording. Throws if CUPTI refuses.
  Mark Start();

  struct Log {
    std::vector<DeviceKernel> kernels;
    size_t dropped = 0;  // CUPTI had no memory for them
  };
  // End it. The caller has waited for the kernels.
  Log Stop(const Mark& start);

 private:
  DeviceKernels();

  static void GiveBuffer(uint8_t** buffer, size_t* size, size_t* most_records);
  static void TakeBuffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                         size_t filled);
  void Check(int code, const char* function) const;

  culaunch::jit::SharedCudaLibrary library_;
  int (*register_callbacks_)(decltype(&GiveBuffer), decltype(&TakeBuffer));
  int (*enable_)(int kind);
  int (*disable_)(int kind);
  int (*flush_)(uint32_t flags);
  int (*next_)(uint8_t* buffer, size_t filled, void** record);
  int (*dropped_now_)(CUcontext context, uint32_t stream, size_t* count);
  int (*timestamp_)(uint64_t* time);
  int (*describe_)(int code, const char** text);

  culaunch::Mutex control_;  // of beginnings and ends
  int recordings_ = 0;
  culaunch::Mutex mutex_;  // of the log
  std::deque<DeviceKernel> log_;
  size_t dropped_ = 0;
};

}  // namespace profile
