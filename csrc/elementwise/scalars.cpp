#include "elementwise/scalars.h"

#include <cmath>
#include <cstring>

#include "driver/errors.h"
#include "python/numbers.h"

namespace elementwise {

namespace {

// A number of any type, before the conversion to the parameter's type.
struct AnyNumber {
  bool is_unsigned = false;
  bool is_real = false;
  long long whole = 0;
  double real = 0;
  double imaginary = 0;
};

float FloatOfHalf(uint16_t bits, uint8_t number) {
  uint32_t wide;
  if (number == kBfloat16) {
    wide = uint32_t{bits} << 16;
  } else {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const double size = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                        : exponent == 0 ? std::ldexp(fraction, -24)
                                        : std::ldexp(fraction + 1024, exponent - 25);
    return static_cast<float>((bits & 0x8000) != 0 ? -size : size);
  }
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// The value of a NumPy or ctypes scalar from its bytes.
AnyNumber NumberFromBytes(const unsigned char* bytes, uint8_t number) {
  AnyNumber value;
  const auto size = static_cast<size_t>(ItemSize(number));
  if (number == kBool || (number >= kUint8 && number <= kUint64)) {
    value.is_unsigned = true;
    std::memcpy(&value.whole, bytes, size);
  } else if (number <= kInt64) {
    std::memcpy(&value.whole, bytes, size);
    const int unused = 64 - 8 * static_cast<int>(size);
    value.whole =
        static_cast<long long>(static_cast<unsigned long long>(value.whole) << unused) >> unused;
  } else {
    value.is_real = true;
    float parts[2] = {0, 0};
    double wide[2] = {0, 0};
    if (size == 2) {
      uint16_t bits;
      std::memcpy(&bits, bytes, sizeof bits);
      value.real = FloatOfHalf(bits, number);
    } else if (number == kFloat32 || number == kComplex64) {
      std::memcpy(parts, bytes, size);
      value.real = parts[0];
      value.imaginary = parts[1];
    } else {
      std::memcpy(wide, bytes, size);
      value.real = wide[0];
      value.imaginary = wide[1];
    }
  }
  return value;
}

bool ReadNumber(const Operand& operand, AnyNumber* value) {
  if (operand.number == kWeakComplex) {
    value->is_real = true;
    value->real = PyComplex_RealAsDouble(operand.object);
    value->imaginary = PyComplex_ImagAsDouble(operand.object);
  } else if (operand.number == kWeakFloat) {
    value->is_real = true;
    value->real = PyFloat_AsDouble(operand.object);
  } else if (operand.number >= kFirstWeak) {
    int64_t whole = 0;
    const IntRange range = ReadInt(operand.object, &whole);
    value->whole = whole;
    value->is_unsigned = range == IntRange::kUnsigned;
    if (range == IntRange::kTooLarge) {
      PyErr_SetString(PyExc_OverflowError, " must fit 64 bits");
    }
  } else {
    const auto number = static_cast<uint8_t>(operand.number - kFirstScalar);
    Ref bytes;
    Py_buffer view;
    if (PyObject_GetBuffer(operand.object, &view, PyBUF_SIMPLE) != 0) {
      PyErr_Clear();  // some NumPy scalars (ml_dtypes) export no buffer
      bytes = Ref(PyObject_CallMethod(operand.object, "tobytes", nullptr));
      if (!bytes || PyObject_GetBuffer(bytes.get(), &view, PyBUF_SIMPLE) != 0) return false;
    }
    if (view.len == ItemSize(number)) {
      *value = NumberFromBytes(static_cast<const unsigned char*>(view.buf), number);
    } else {
      PyErr_Format(PyExc_ValueError, " must have a size of %d, in bytes (got %zd)",
                   ItemSize(number), view.len);
    }
    PyBuffer_Release(&view);
  }
  return PyErr_Occurred() == nullptr;
}

bool Fits(const AnyNumber& value, uint8_t number) {
  const int bits = TypeOf(number).bits;
  if (number == kBool || number >= kFloat16 || value.is_real) return true;
  if (number >= kUint8) {
    if (value.whole < 0 && !value.is_unsigned) return false;
    return bits == 64 || static_cast<unsigned long long>(value.whole) < 1ULL << bits;
  }
  if (value.is_unsigned && value.whole < 0) return false;  // above the signed 64-bit range
  if (bits == 64) return true;
  return value.whole >= -(1LL << (bits - 1)) && value.whole < 1LL << (bits - 1);
}

// Round toward zero, and clamp to the type's range. NaN gives 0, as on the device.
long long Nearest(double real, uint8_t number) {
  const bool is_unsigned = number >= kUint8;
  const int bits = TypeOf(number).bits;
  const double end = std::ldexp(1.0, is_unsigned ? bits : bits - 1);  // one above the maximum
  if (real != real) return 0;
  if (is_unsigned && real <= 0) return 0;
  if (real >= end) return static_cast<long long>((~0ULL >> (64 - bits)) >> (is_unsigned ? 0 : 1));
  if (real <= -end) return -static_cast<long long>(1ULL << (bits - 2)) * 2;
  return is_unsigned ? static_cast<long long>(static_cast<unsigned long long>(real))
                     : static_cast<long long>(real);
}

}  // namespace

bool StoreScalar(const Operand& operand, uint8_t number, unsigned char* target, size_t size) {
  AnyNumber value;
  if (!ReadNumber(operand, &value)) return false;
  if (number >= kFirstWeak) {
    static constexpr uint8_t wide[] = {kBool, kInt64, kFloat64, kComplex128};
    number = wide[number - kFirstWeak];
  }
  if (!Fits(value, number)) {
    PyErr_Format(PyExc_OverflowError, " must fit %s (got %S)", NameOf(number),
                 Spelled(operand.object).get());
    return false;
  }
  const double real = value.is_real ? value.real
                      : value.is_unsigned
                          ? static_cast<double>(static_cast<unsigned long long>(value.whole))
                          : static_cast<double>(value.whole);
  const float single[2] = {static_cast<float>(real), static_cast<float>(value.imaginary)};
  const double wide[2] = {real, value.imaginary};
  if (number == kBool) {
    *target = value.is_real ? value.real != 0 : value.whole != 0;
  } else if (number <= kUint64) {
    const long long whole = value.is_real ? Nearest(value.real, number) : value.whole;
    std::memcpy(target, &whole, size);
  } else if (number == kFloat64 || number == kComplex128) {
    std::memcpy(target, wide, size);
  } else {
    std::memcpy(target, single, size);
  }
  return true;
}

}  // namespace elementwise
