// One call of a function by XLA: its arguments as arrays, the call, and the results where XLA wants
// them.
#pragma once

#include "python/python.h"
#include "xla/abi.h"
#include "xla/running_call.h"
#include "xla/target.h"

namespace xla_calls {

// The name of the attribute that says what is called: a text that the upcall `resolve` reads.
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
  // The memory of an argument. For an argument that is written, it is the memory of its result,
  // which XLA has made the same.
  bool MemoryOf(size_t index, const XlaBuffer& buffer, void** data);
  Ref ReadArray();
  Ref ReadSequence(long count);
  bool ReadArguments();
  // The arrays of what the function gives, in order; an argument as it came is no result.
  bool Collect(PyObject* value);
  bool Check() const;
  // Most arrays were allocated where they belong.
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
