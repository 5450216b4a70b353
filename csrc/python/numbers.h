// Reading Python's ints and floats, small ints and floats without a call into Python.
#pragma once

#include <culaunch/version.h>

#include <cstdint>

#include "python/python.h"

// Whether numbers have the layout that this file assumes. CPython's structures are not part of its
// stable ABI. An int is a signed count of digits (3.10 and 3.11), or a word with the count and the
// sign (from 3.12 on), and then the digits. When the module is imported, a list of numbers is read
// this way and through the C API. If the results differ, every number is read through the C API.
extern bool g_numbers_are_known;

// Run the test for a Python version such as 0x030e00f0; 0: the running one. Returns whether numbers
// are read in place from now on.
bool TryNumbers(unsigned long version);
// False: as if the test had failed. True: as it turned out. The switch of _core.use_shortcut.
void UseNumbers(bool use);

namespace numbers {

// The place of an int's count of digits, and of a float's value.
struct Behind {
  PyObject head;
  union {
    Py_ssize_t count;
    uintptr_t tag;
    double value;
  };
  uint32_t digit;  // of an int: 30 bits
};

inline bool ReadSmall(PyObject* object, int64_t* value) {
  const auto* behind = reinterpret_cast<const Behind*>(object);
#if PY_VERSION_HEX >= 0x030c0000
  constexpr uintptr_t kTwoDigits = 2 << 3;  // below: the count, the sign (2: negative)
  if (CULAUNCH_UNLIKELY(behind->tag >= kTwoDigits)) return false;
  *value = (1 - static_cast<int64_t>(behind->tag & 3)) * behind->digit;
#else
  if (CULAUNCH_UNLIKELY(static_cast<size_t>(behind->count + 1) > 2)) return false;
  *value = behind->count * static_cast<int64_t>(behind->digit);
#endif
  return true;
}

}  // namespace numbers

// Read an int of one digit (30 bits). False if it has more digits, or if the layout is not known.
// Use the C API then.
inline bool ReadSmallInt(PyObject* object, int64_t* value) {
  return !CULAUNCH_UNLIKELY(!g_numbers_are_known) && numbers::ReadSmall(object, value);
}

// Whether a number fits an int64_t, and its range if it does not.
enum class IntRange : uint8_t {
  kSigned,    // it fits
  kUnsigned,  // from 2^63 to 2^64 - 1: the value read has its bits
  kTooLarge,  // neither, below or above
};

// An int that ReadSmallInt does not read. Passed by value, so ReadInt's result stays in registers.
struct LargeInt {
  IntRange range;
  int64_t value;
};
LargeInt ReadLargeInt(PyObject* object);

// Read an int, or an object of a subclass. No Python error is ever set.
inline IntRange ReadInt(PyObject* object, int64_t* value) {
  if (!CULAUNCH_UNLIKELY(!ReadSmallInt(object, value))) return IntRange::kSigned;
  const LargeInt large = ReadLargeInt(object);
  *value = large.value;
  return large.range;
}

// Read a float.
inline double ReadFloat(PyObject* object) {
  if (CULAUNCH_UNLIKELY(!g_numbers_are_known)) return PyFloat_AsDouble(object);
  return reinterpret_cast<const numbers::Behind*>(object)->value;
}
