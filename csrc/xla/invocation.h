// One call of a function by XLA: makes arrays of the arguments, calls, and puts the results where
// XLA expects them.
#pragma once

#include "python/python.h"
#include "xla/abi.h"
#include "xla/running_call.h"
#include "xla/target.h"

namespace xla_calls {

// The name of the attribute that identifies the function. The upcall `resolve` reads its text.
inline constexpr char kAttribute[] = "call";

class Invocation {
 public:
  Invocation(const CallFrame& frame, bool is_host)
      : frame_(frame), call_(frame.api, frame.context, is_host), lists_(call_.lists()) {}

  // False with a Python error set.
  bool Run();

 private:
  bool Call();
  bool FindCall();
  bool ReadResults();
  // The memory of an argument. An argument that is written has the memory of its result, which XLA
  // has aliased.
  bool MemoryOf(size_t index, const XlaBuffer& buffer, void** data);
  Ref ReadArray();
  Ref ReadSequence(long count);
  bool ReadArguments();
  // The arrays that the function returns, in order. An unchanged argument is not a result.
  bool Collect(PyObject* value);
  bool Check() const;
  // Copy the results that were not allocated in their final place.
  bool CopyResults();
  bool Synchronize() const;
  bool Copy(void* to, const void* from, size_t bytes) const;

  const CallFrame& frame_;
  RunningCall call_;
  CallLists& lists_;
  const Target* target_ = nullptr;
  size_t returned_ = 0;
  size_t positional_ = 0;
};

}  // namespace xla_calls
