#include "elementwise/element_types.h"

namespace elementwise {

namespace {

struct TypeInfo {
  DLDataType type;
  const char* name;
};

constexpr TypeInfo kInfo[kTypes] = {
    {{6, 8, 1}, "bool"},     {{0, 8, 1}, "int8"},       {{0, 16, 1}, "int16"},
    {{0, 32, 1}, "int32"},   {{0, 64, 1}, "int64"},     {{1, 8, 1}, "uint8"},
    {{1, 16, 1}, "uint16"},  {{1, 32, 1}, "uint32"},    {{1, 64, 1}, "uint64"},
    {{2, 16, 1}, "float16"}, {{4, 16, 1}, "bfloat16"},  {{2, 32, 1}, "float32"},
    {{2, 64, 1}, "float64"}, {{5, 64, 1}, "complex64"}, {{5, 128, 1}, "complex128"},
};

}  // namespace

uint8_t NumberOf(DLDataType type) {
  if (type.lanes > 1) return kTypes;
  for (uint8_t i = 0; i < kTypes; ++i) {
    if (kInfo[i].type.code == type.code && kInfo[i].type.bits == type.bits) return i;
  }
  return kTypes;
}

DLDataType TypeOf(uint8_t number) {
  if (number < kTypes) return kInfo[number].type;
  if (number >= kFirstWeak) {
    static constexpr uint8_t wide[] = {kBool, kInt64, kFloat64, kComplex128};
    return kInfo[wide[number - kFirstWeak]].type;
  }
  return kInfo[number - kFirstScalar].type;
}

const char* NameOf(uint8_t number) {
  if (number < kTypes) return kInfo[number].name;
  static constexpr const char* weak[] = {"Python bool", "Python int", "Python float",
                                         "Python complex"};
  return number >= kFirstWeak ? weak[number - kFirstWeak] : kInfo[number - kFirstScalar].name;
}

}  // namespace elementwise
