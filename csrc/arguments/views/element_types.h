// The element types of arrays, and their numbers.
#pragma once

#include <cstdint>

#include "formats/dlpack.h"

namespace operands {

// The numbers of element types: arrays from 0, typed scalars from 32, Python's scalars from 64.
// Those that an elementwise kernel computes with come first.
constexpr uint8_t kTypes = 15;
constexpr uint8_t kAllTypes = 21;
constexpr uint8_t kFirstScalar = 32;
constexpr uint8_t kFirstWeak = 64;
enum Number : uint8_t {
  kBool = 0,
  kInt8 = 1,
  kInt64 = 4,
  kUint8 = 5,
  kUint64 = 8,
  kFloat16 = 9,
  kBfloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
  kComplex64 = 13,
  kComplex128 = 14,
  kWeakBool = 64,
  kWeakInt = 65,
  kWeakFloat = 66,
  kWeakComplex = 67,
};

// The number of an array's element type; kAllTypes if there is none.
uint8_t NumberOf(DLDataType type);

// An element type as one number; one lane if DLPack gives none.
constexpr uint32_t PackType(DLDataType type) {
  return type.code | static_cast<uint32_t>(type.bits) << 8 |
         static_cast<uint32_t>(type.lanes > 1 ? type.lanes : 1) << 16;
}

DLDataType TypeOf(uint8_t number);
const char* NameOf(uint8_t number);
inline int ItemSize(uint8_t number) { return TypeOf(number).bits * TypeOf(number).lanes / 8; }

}  // namespace operands
