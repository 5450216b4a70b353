#include "profile/device_kernels.h"

#include <culaunch/error.h>

#include <cstddef>
#include <cstdlib>
#include <utility>

namespace profile {

namespace {

constexpr int kConcurrentKernel = 10;  // CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
constexpr uint32_t kFlushForced = 1;   // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
constexpr size_t kBufferBytes = size_t{1} << 20;

// The start of CUPTI's record of a kernel, which is the same from CUpti_ActivityKernel4 on. (Newer
// versions append fields. A test compares it with CUPTI's header.)
struct KernelRecord {
  uint32_t kind;
  uint8_t cache[2];
  uint16_t registers;
  uint32_t partitioned[2];
  uint64_t begin;
  uint64_t end;
  uint64_t completed;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared;
  int32_t dynamic_shared;
  uint32_t local_bytes;
  uint32_t all_local_bytes;
  uint32_t correlation;
  int64_t grid_number;
  const char* name;
};
static_assert(offsetof(KernelRecord, grid) == 52 && offsetof(KernelRecord, name) == 104);

culaunch::jit::CudaLibrary CuptiLibrary() {
  return {"CUPTI",
          {"libcupti.so.13", "libcupti.so.12"},
          {"cu13/lib", "cuda_cupti/lib"},
          "nvidia-cuda-cupti",
          "cuptiActivityEnable"};
}

}  // namespace

DeviceKernels& DeviceKernels::Get() {
  static auto* const kernels = new DeviceKernels;
  return *kernels;
}

DeviceKernels::DeviceKernels()
    : library_(CuptiLibrary(), ""),
      register_callbacks_(library_.Require<int(decltype(&GiveBuffer), decltype(&TakeBuffer))>(
          "cuptiActivityRegisterCallbacks")),
      enable_(library_.Require<int(int)>("cuptiActivityEnable")),
      disable_(library_.Require<int(int)>("cuptiActivityDisable")),
      flush_(library_.Require<int(uint32_t)>("cuptiActivityFlushAll")),
      next_(library_.Require<int(uint8_t*, size_t, void**)>("cuptiActivityGetNextRecord")),
      dropped_now_(
          library_.Require<int(CUcontext, uint32_t, size_t*)>("cuptiActivityGetNumDroppedRecords")),
      timestamp_(library_.Require<int(uint64_t*)>("cuptiGetTimestamp")),
      describe_(library_.Require<int(int, const char**)>("cuptiGetResultString")) {}

void DeviceKernels::Check(int code, const char* function) const {
  if (code == 0) return;
  const char* text = nullptr;
  if (describe_(code, &text) != 0 || text == nullptr) text = "an unknown error";
  throw culaunch::Error(culaunch::ErrorKind::kDriver, CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN",
                        std::string(function) + " of " + library_.path() + " failed: " + text +
                            ". Only one profiler can use CUPTI at a time");
}

DeviceKernels::Mark DeviceKernels::Start() {
  const culaunch::LockGuard control(control_);
  if (recordings_ == 0) {
    Check(register_callbacks_(GiveBuffer, TakeBuffer), "cuptiActivityRegisterCallbacks");
    Check(enable_(kConcurrentKernel), "cuptiActivityEnable");
  } else {
    // Kernels that ran before belong only to the outer recordings.
    Check(flush_(kFlushForced), "cuptiActivityFlushAll");
  }
  Mark mark{};
  Check(timestamp_(&mark.time), "cuptiGetTimestamp");
  ++recordings_;
  const culaunch::LockGuard lock(mutex_);
  mark.begin = log_.size();
  mark.dropped = dropped_;
  return mark;
}

DeviceKernels::Log DeviceKernels::Stop(const Mark& start) {
  const culaunch::LockGuard control(control_);
  const int flushed = flush_(kFlushForced);
  const bool is_last = --recordings_ == 0;
  if (is_last) disable_(kConcurrentKernel);
  Log log;
  {
    const culaunch::LockGuard lock(mutex_);
    log.kernels.assign(log_.begin() + static_cast<std::ptrdiff_t>(start.begin), log_.end());
    log.dropped = dropped_ - start.dropped;
    if (is_last) log_.clear();
  }
  Check(flushed, "cuptiActivityFlushAll");
  return log;
}

void DeviceKernels::GiveBuffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::malloc(kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
}

void DeviceKernels::TakeBuffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                               size_t filled) {
  DeviceKernels& self = Get();
  const culaunch::LockGuard lock(self.mutex_);
  void* record = nullptr;
  while (filled != 0 && self.next_(buffer, filled, &record) == 0) {
    const auto& one = *static_cast<const KernelRecord*>(record);
    if (one.kind != kConcurrentKernel) continue;
    DeviceKernel kernel = {one.name != nullptr ? one.name : "",
                           {one.grid[0], one.grid[1], one.grid[2]},
                           {one.block[0], one.block[1], one.block[2]},
                           one.device,
                           one.stream,
                           one.registers,
                           one.static_shared,
                           one.dynamic_shared,
                           one.local_bytes,
                           one.begin,
                           one.end};
    self.log_.push_back(std::move(kernel));
  }
  size_t dropped = 0;
  if (self.dropped_now_(context, stream, &dropped) == 0) self.dropped_ += dropped;
  std::free(buffer);
}

}  // namespace profile
