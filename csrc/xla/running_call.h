// The memory of one call that XLA makes: its arguments and results, and what is allocated
// meanwhile.
#pragma once

#include <memory>
#include <string>

#include "formats/dlpack.h"
#include "python/python.h"
#include "xla/abi.h"
#include "xla/call_lists.h"

namespace xla_calls {

// The call that runs on this thread: arrays are allocated from its results, where one fits, and as
// scratch memory in the order of its stream. All of it is XLA's again when the call ends.
class RunningCall {
 public:
  RunningCall(const Api* api, ExecutionContext* context, bool is_host);
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;
  ~RunningCall();

  // Ask XLA for the device and the stream; false with a Python error set.
  bool Open();

  // Give all memory back: false with a Python error set. One that was set before stays.
  bool GiveBack();

  static RunningCall* Current();

  // Null where there is none, and why.
  void* Allocate(size_t bytes, std::string* why);
  char* AllocateArray(DLDataType dtype, int32_t ndim, const int64_t* shape, size_t bytes,
                      std::string* why);

  // An array, and what closes it when the call ends.
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
