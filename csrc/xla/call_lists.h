// The lists of a call. The thread keeps their memory for its next call, which then allocates
// nothing for them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "formats/dlpack.h"
#include "python/python.h"

namespace xla_calls {

// A buffer that XLA has assigned for a result.
struct Result {
  char* data;
  DLDataType dtype;
  int32_t ndim;
  const int64_t* dims;
  size_t bytes;
  bool is_taken;  // given out as a new array
};

struct Scratch {
  void* data;
  size_t bytes;
};

// Closes an array when the call ends.
using CloseFunction = void (*)(PyObject* array);

struct CallLists {
  std::vector<Result> results;
  std::vector<Scratch> scratch;
  std::vector<std::pair<Ref, CloseFunction>> open;
  std::vector<PyObject*> objects;  // the arguments of the function; the first is vectorcall's
  std::vector<PyObject*> inputs;   // the arrays among them, in order
  std::vector<PyObject*> given;    // the returned arrays
  std::vector<const char*> sources;
  std::vector<Ref> held;
};

// Take empty lists, and return them. The GIL must be held.
std::unique_ptr<CallLists> TakeLists();
void GiveLists(std::unique_ptr<CallLists> lists);

}  // namespace xla_calls
