// Reading Python's small ints and its floats without a call into Python.
#pragma once

#include <cstdint>
#include <cstring>

#include "python.h"

// How this interpreter lays ints out. CPython's structures are not part of its stable ABI: they
// are used only where reading a list of numbers, when the module is imported, gives just what the
// C API gives.
enum class NumberLayout : uint8_t {
  kUnknown,  // every number is read through the C API
  kSigned,   // 3.10 and 3.11: a signed count of digits, then the digits
  kTagged,   // from 3.12 on: a word with the count and the sign, then the digits
};
extern NumberLayout g_number_layout;

// Find out which one it is.
void FindNumberLayout();

namespace numbers {

// Where an int's count of digits is, and a float's value.
struct Behind {
  PyObject head;
  union {
    Py_ssize_t count;
    uintptr_t tag;
    double value;
  };
  uint32_t digit;  // of an int: 30 bits
};

inline bool ReadSmall(NumberLayout layout, PyObject* object, int64_t* value) {
  const auto* behind = reinterpret_cast<const Behind*>(object);
  if (layout == NumberLayout::kTagged) {
    constexpr uintptr_t kTwoDigits = 2 << 3;  // below: the count, the sign (2: negative)
    if (behind->tag >= kTwoDigits) return false;
    *value = (1 - static_cast<int64_t>(behind->tag & 3)) * behind->digit;
    return true;
  }
  if (layout == NumberLayout::kUnknown) return false;
  if (behind->count < -1 || behind->count > 1) return false;
  *value = behind->count == 0 ? 0 : behind->count * static_cast<int64_t>(behind->digit);
  return true;
}

}  // namespace numbers

// Read an int of one digit (30 bits). False where it has more, or where the layout is not
// known; then the C API tells.
inline bool ReadSmallInt(PyObject* object, int64_t* value) {
  return numbers::ReadSmall(g_number_layout, object, value);
}

// Read a float.
inline double ReadFloat(PyObject* object) {
  if (g_number_layout == NumberLayout::kUnknown) return PyFloat_AsDouble(object);
  return reinterpret_cast<const numbers::Behind*>(object)->value;
}
