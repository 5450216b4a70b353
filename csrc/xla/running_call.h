// The memory of one call by XLA: its arguments and results, and the allocations during the call.
#pragma once

#include <memory>
#include <string>

#include "formats/dlpack.h"
#include "python/python.h"
#include "xla/abi.h"
#include "xla/call_lists.h"

namespace xla_calls {

// The call that runs on this thread. Arrays are allocated from its results if one fits, and
// otherwise as scratch memory in the order of its stream. XLA owns all of this memory again when
// the call ends.
class RunningCall {
 public:
  RunningCall(const Api* api, ExecutionContext* context, bool is_host);
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;
  ~RunningCall();

  // Ask XLA for the device and the stream; false with a Python error set.
  bool Open();

  // Return all memory. False with a Python error set. An error that was set before stays.
  bool GiveBack();

  static RunningCall* Current();

  // Null with the reason if no memory is left.
  void* Allocate(size_t bytes, std::string* why);
  char* AllocateArray(DLDataType dtype, int32_t ndim, const int64_t* shape, size_t bytes,
                      std::string* why);

  // Keep an array, and close it with this function when the call ends.
  void Keep(PyObject* array, CloseFunction close) {
    lists_->open.emplace_back(Ref::Borrow(array), close);
  }

  DLDevice device() const { return device_; }
  void* stream() const { return stream_; }
  bool is_host() const { return is_host_; }
  CallLists& lists() const { return *lists_; }

 private:
  const Api* api_;
  ExecutionContext* context_;
  bool is_host_;
  DLDevice device_ = {0, 0};
  void* stream_ = nullptr;
  std::unique_ptr<CallLists> lists_;
  RunningCall* outer_;
};

}  // namespace xla_calls
