#include "triton/values/forced.h"

#include <cmath>
#include <cstring>

#include "formats/half.h"
#include "python/numbers.h"

namespace triton {

Mismatch ForceFloat(const ForcedType& type, PyObject* object, uint64_t* bits) {
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return Mismatch::kKind;
  }
  if (type.bits == 64) {
    std::memcpy(bits, &value, sizeof value);
  } else if (type.bits == 32) {
    *bits = SingleBits(value);
  } else {
    // Pack them as Triton's launcher does: truncate for bfloat16, and refuse a number that would be
    // an fp16 infinity.
    *bits = type.is_bfloat ? SingleBits(value) >> 16 : Float16Bits(value);
    const bool is_infinite = (*bits & 0x7fff) == 0x7c00;
    if (!type.is_bfloat && is_infinite && std::isfinite(value)) return Mismatch::kOverflow;
  }
  return Mismatch::kNone;
}

Mismatch ForceInt(const ForcedType& type, PyObject* object, uint64_t* bits) {
  if (!PyLong_Check(object)) return Mismatch::kKind;
  int64_t number = 0;
  const IntRange range = ReadInt(object, &number);
  if (range == IntRange::kSigned) {
    const int shift = 64 - type.bits;
    const auto word = static_cast<uint64_t>(number);
    const bool fits = type.type_class == ForcedType::kSigned
                          ? static_cast<int64_t>(word << shift) >> shift == number
                          : number >= 0 && (word << shift) >> shift == word;
    if (!fits) return Mismatch::kOverflow;
    *bits = word;
    return Mismatch::kNone;
  }
  if (range == IntRange::kTooLarge || type.type_class == ForcedType::kSigned || type.bits != 64) {
    return Mismatch::kOverflow;
  }
  *bits = static_cast<uint64_t>(number);
  return Mismatch::kNone;
}

}  // namespace triton
