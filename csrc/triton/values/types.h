// Triton's specialization of an argument as one word of a key, and back in Triton's terms.
#pragma once

#include <cstdint>

#include "formats/dlpack.h"
#include "python/python.h"

namespace triton {

// Triton's key of an argument: None, "", "D" (divisible by 16), or 1.
enum class SpecKey : uint8_t { kNone, kEmpty, kDivisible, kOne };

enum class WordKind : uint8_t {
  kMissing = 0,  // an omitted constant (only in saved kernel sets)
  kI32,
  kI64,
  kU64,
  kOne,  // the int 1, folded
  kU1,
  kFp32,
  kNone,
  kTensor,      // payload: the DLPack type
  kNamed,       // a tensor whose type is an interned name; payload: its number
  kForced,      // the type is the parameter's annotation
  kTuple,       // payload: length, and number of the tuple's type; the items follow
  kDescriptor,  // payload: rank and element type; the words of the block's shape follow
  kConstant,    // payload: the number of an interned object
  kInt,         // the value follows
  kFloat,       // its bits follow
  kBool,        // payload: the value
  kOption,      // payload: the number of its name; the value's words follow
  kTarget,      // payload: the architecture
  kUnset,       // an omitted argument that a tuned configuration's key names
};

constexpr uint64_t MakeWord(WordKind kind, uint64_t payload = 0, SpecKey key = SpecKey::kNone) {
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(key) << 8 | payload << 16;
}
constexpr WordKind KindOf(uint64_t word) { return static_cast<WordKind>(word & 0xff); }
constexpr SpecKey KeyOf(uint64_t word) { return static_cast<SpecKey>(word >> 8 & 0xff); }
constexpr uint64_t PayloadOf(uint64_t word) { return word >> 16; }

constexpr uint64_t PackType(DLDataType type) {
  return type.code | static_cast<uint64_t>(type.bits) << 8 |
         static_cast<uint64_t>(type.lanes) << 16;
}

// Triton's key of a number or an address.
constexpr SpecKey KeyOfBits(uint64_t bits, bool specialize, bool align) {
  return !specialize               ? SpecKey::kNone
         : align && bits % 16 == 0 ? SpecKey::kDivisible
                                   : SpecKey::kEmpty;
}

// An int of at most 64 bits, signed.
constexpr uint64_t IntWord(int64_t value, bool specialize, bool align) {
  if (value == 1 && specialize) return MakeWord(WordKind::kOne, 0, SpecKey::kOne);
  const WordKind kind = value == static_cast<int32_t>(value) ? WordKind::kI32 : WordKind::kI64;
  return MakeWord(kind, 0, KeyOfBits(static_cast<uint64_t>(value), specialize, align));
}

// Triton's name of an element type, such as "fp32"; null if Triton has none.
const char* TypeName(uint64_t packed);

// The effect of an annotation on a parameter.
struct ForcedType {
  enum Class : uint8_t { kNotForced, kSigned, kUnsigned, kFloatingPoint, kBoolean, kPointer };
  Class type_class = kNotForced;
  uint8_t bits = 0;
  bool is_bfloat = false;
};

// Read Triton's name of a type ("i64", "*fp32", "u1"); kNotForced for "".
bool ParseForcedType(const char* name, ForcedType* type);

// The kinds of objects that only Triton interprets, recognized by their type.
enum class ObjectKind : int {
  kUnsupported = 0,
  kTensorLike = 1,        // data_ptr() and dtype
  kConstexpr = 2,         // tl.constexpr, a JIT function: always a constant
  kDescriptor = 3,        // TensorDescriptor
  kInteger = 4,           // a subclass of int
  kFloatNumber = 5,       // a subclass of float, such as numpy.float64
  kLayoutDescriptor = 6,  // a TensorDescriptor of Gluon
};

// Classify a type, once. -1 with a Python error set on failure.
int ClassifyObject(PyTypeObject* type);

}  // namespace triton
