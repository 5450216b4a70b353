// The notes about a launch's tensors for the emulated driver. culaunch/tvm_ffi.h includes this.
#pragma once

#include <cstdint>

#include "driver.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// The memory of a tensor, with sizes and strides in elements.
struct TensorMemory {
  const char* data;
  int ndim;
  const int64_t* shape;
  const int64_t* strides;
  int64_t element_bytes;
};

// Reports the tensors of a launch to a driver that checks addresses (the emulator). Tensors noted
// in an exported function apply to all launches in it, and to none after it.
class TensorNotes {
 public:
  TensorNotes() { ++State().depth; }
  TensorNotes(const TensorNotes&) = delete;
  TensorNotes& operator=(const TensorNotes&) = delete;
  ~TensorNotes() {
    Call& call = State();
    if (--call.depth == 0 && CULAUNCH_UNLIKELY(call.has_notes)) Forget();
  }

  static void Add(const Driver& driver, const TensorMemory& memory);

 private:
  struct Call {
    int depth = 0;
    bool has_notes = false;
  };

  static void Forget();
  static Call& State() {
    static thread_local Call call;
    return call;
  }
};

}  // namespace detail

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/tensor_notes.h"
#endif
