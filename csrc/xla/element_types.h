// DLPack's types for XLA's numbers of element types.
#pragma once

#include "formats/dlpack.h"

namespace xla_calls {

// Bits 0: culaunch does not support the type.
inline DLDataType TypeOfXla(int number) {
  switch (number) {
    case 1:
      return {kDLBool, 8, 1};
    case 2:
    case 3:
    case 4:
    case 5:
      return {kDLInt, static_cast<uint8_t>(8 << (number - 2)), 1};
    case 6:
    case 7:
    case 8:
    case 9:
      return {kDLUInt, static_cast<uint8_t>(8 << (number - 6)), 1};
    case 10:
    case 11:
    case 12:
      return {kDLFloat, static_cast<uint8_t>(16 << (number - 10)), 1};
    case 16:
      return {kDLBfloat, 16, 1};
    case 15:
      return {kDLComplex, 64, 1};
    case 18:
      return {kDLComplex, 128, 1};
    case 19:
      return {kDLFloat8_e5m2, 8, 1};
    case 20:
      return {kDLFloat8_e4m3fn, 8, 1};
    case 24:
      return {kDLFloat8_e5m2fnuz, 8, 1};
    case 25:
      return {kDLFloat8_e4m3fnuz, 8, 1};
    case 33:
      return {kDLFloat8_e8m0fnu, 8, 1};
    default:
      return {0, 0, 0};
  }
}

}  // namespace xla_calls
