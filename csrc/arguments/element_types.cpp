#include "arguments/element_types.h"

namespace operands {

namespace {

struct TypeInfo {
  DLDataType type;
  const char* name;
};

constexpr TypeInfo kInfo[kAllTypes] = {
    {{6, 8, 1}, "bool"},
    {{0, 8, 1}, "int8"},
    {{0, 16, 1}, "int16"},
    {{0, 32, 1}, "int32"},
    {{0, 64, 1}, "int64"},
    {{1, 8, 1}, "uint8"},
    {{1, 16, 1}, "uint16"},
    {{1, 32, 1}, "uint32"},
    {{1, 64, 1}, "uint64"},
    {{2, 16, 1}, "float16"},
    {{4, 16, 1}, "bfloat16"},
    {{2, 32, 1}, "float32"},
    {{2, 64, 1}, "float64"},
    {{5, 64, 1}, "complex64"},
    {{5, 128, 1}, "complex128"},
    {{10, 8, 1}, "float8_e4m3fn"},
    {{12, 8, 1}, "float8_e5m2"},
    {{11, 8, 1}, "float8_e4m3fnuz"},
    {{13, 8, 1}, "float8_e5m2fnuz"},
    {{14, 8, 1}, "float8_e8m0fnu"},
    {{17, 4, 2}, "float4_e2m1fn_x2"},
};

}  // namespace

uint8_t NumberOf(DLDataType type) {
  const uint16_t lanes = type.lanes > 1 ? type.lanes : 1;
  for (uint8_t i = 0; i < kAllTypes; ++i) {
    const DLDataType& one = kInfo[i].type;
    if (one.code == type.code && one.bits == type.bits && one.lanes == lanes) return i;
  }
  return kAllTypes;
}

DLDataType TypeOf(uint8_t number) {
  if (number < kAllTypes) return kInfo[number].type;
  if (number >= kFirstWeak) {
    static constexpr uint8_t wide[] = {kBool, kInt64, kFloat64, kComplex128};
    return kInfo[wide[number - kFirstWeak]].type;
  }
  return kInfo[number - kFirstScalar].type;
}

const char* NameOf(uint8_t number) {
  if (number < kAllTypes) return kInfo[number].name;
  static constexpr const char* weak[] = {"Python bool", "Python int", "Python float",
                                         "Python complex"};
  return number >= kFirstWeak ? weak[number - kFirstWeak] : kInfo[number - kFirstScalar].name;
}

}  // namespace operands
