// What tensor_notes.h declares.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../driver.h"
#include "../tensor_notes.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

CULAUNCH_INLINE void TensorNotes::Add(const Driver& driver, const TensorMemory& memory) {
  int64_t first = 0;
  int64_t last = 0;
  for (int i = 0; i < memory.ndim; ++i) {
    if (memory.shape[i] == 0) return;
    (memory.strides[i] < 0 ? first : last) += (memory.shape[i] - 1) * memory.strides[i];
  }
  Call& call = State();
  if (call.depth != 0 && !call.has_notes) {
    driver.note_array(nullptr, 0, kNoteFunction);
    call.has_notes = true;
  }
  driver.note_array(memory.data + first * memory.element_bytes,
                    static_cast<size_t>((last - first + 1) * memory.element_bytes), kNoteArray);
}

CULAUNCH_INLINE void TensorNotes::Forget() {
  State().has_notes = false;
  Driver::Get().note_array(nullptr, 0, kNoteLaunch);
}

}  // namespace detail

CULAUNCH_NAMESPACE_END
