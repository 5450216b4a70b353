#include "arguments/views/element_types.h"

namespace operands {

namespace {

struct TypeInfo {
  DLDataType type;
  const char* name;
};

constexpr TypeInfo kInfo[kAllTypes] = {
    {{kDLBool, 8, 1}, "bool"},
    {{kDLInt, 8, 1}, "int8"},
    {{kDLInt, 16, 1}, "int16"},
    {{kDLInt, 32, 1}, "int32"},
    {{kDLInt, 64, 1}, "int64"},
    {{kDLUInt, 8, 1}, "uint8"},
    {{kDLUInt, 16, 1}, "uint16"},
    {{kDLUInt, 32, 1}, "uint32"},
    {{kDLUInt, 64, 1}, "uint64"},
    {{kDLFloat, 16, 1}, "float16"},
    {{kDLBfloat, 16, 1}, "bfloat16"},
    {{kDLFloat, 32, 1}, "float32"},
    {{kDLFloat, 64, 1}, "float64"},
    {{kDLComplex, 64, 1}, "complex64"},
    {{kDLComplex, 128, 1}, "complex128"},
    {{kDLFloat8_e4m3fn, 8, 1}, "float8_e4m3fn"},
    {{kDLFloat8_e5m2, 8, 1}, "float8_e5m2"},
    {{kDLFloat8_e8m0fnu, 8, 1}, "float8_e8m0fnu"},
    {{kDLFloat8_e4m3fnuz, 8, 1}, "float8_e4m3fnuz"},
    {{kDLFloat8_e5m2fnuz, 8, 1}, "float8_e5m2fnuz"},
    {{kDLFloat4_e2m1fn, 4, 2}, "float4_e2m1fn_x2"},
};

// A packed type needs one comparison when an allocation looks it up.
struct PackedTypes {
  constexpr PackedTypes() {
    for (uint8_t i = 0; i < kAllTypes; ++i) types[i] = PackType(kInfo[i].type);
  }
  uint32_t types[kAllTypes] = {};
};
constexpr PackedTypes kPacked;

}  // namespace

uint8_t NumberOf(DLDataType type) {
  const uint32_t packed = PackType(type);
  uint8_t number = 0;
  while (number < kAllTypes && kPacked.types[number] != packed) ++number;
  return number;
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
