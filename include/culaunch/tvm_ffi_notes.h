// The notes about a launch's tensors for the emulated driver. culaunch/tvm_ffi.h includes this.
#pragma once

#include <tvm/ffi/container/tensor.h>

#include <cstddef>
#include <cstdint>

#include "driver.h"

CULAUNCH_NAMESPACE_BEGIN

namespace ffi {

using ::tvm::ffi::TensorView;

namespace detail {

// Reports the tensors of a launch to a driver that checks addresses (the emulator). Tensors noted
// in an exported function apply to all launches in it, and to none after it.
class Notes {
 public:
  Notes() { ++State().depth; }
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  ~Notes() {
    Call& call = State();
    if (--call.depth != 0 || !call.has_notes) return;
    call.has_notes = false;
    Driver::Get().note_array(nullptr, 0, kNoteLaunch);
  }

  static void Add(const TensorView& x) {
    if (const Driver* driver = Driver::ThatTakesNotes()) AddTo(*driver, x);
  }

 private:
  static void AddTo(const Driver& driver, const TensorView& x) {
    int64_t first = 0;
    int64_t last = 0;
    for (int i = 0; i < x.ndim(); ++i) {
      if (x.size(i) == 0) return;
      (x.stride(i) < 0 ? first : last) += (x.size(i) - 1) * x.stride(i);
    }
    Call& call = State();
    if (call.depth != 0 && !call.has_notes) {
      driver.note_array(nullptr, 0, kNoteFunction);
      call.has_notes = true;
    }
    const int64_t bytes = (x.dtype().bits * x.dtype().lanes + 7) / 8;
    const char* data = static_cast<char*>(x.data_ptr()) + x.byte_offset();
    driver.note_array(data + first * bytes, static_cast<size_t>((last - first + 1) * bytes),
                      kNoteArray);
  }

  struct Call {
    int depth = 0;
    bool has_notes = false;
  };

  static Call& State() {
    static thread_local Call call;
    return call;
  }
};

}  // namespace detail

}  // namespace ffi

CULAUNCH_NAMESPACE_END
