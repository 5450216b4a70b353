// The instructions of a program: their numbers, names and operands. docs/dev/functions.md says what
// each does. Python reads this list through _core.program_format().
#pragma once

#include <culaunch/launch_options.h>

#include <cstdint>

namespace function {

// The operands:
//   I F B  the register that the result goes to: an int, a float, a bool
//   i f b  a register that is read
//   g      a float register, or -1
//   n      a number     p  a parameter     a  an array argument     x  an axis of it
//   m      the number of a function of Python's math     t  a text (-1: none)
//   *      more operands follow (docs/dev/functions.md)
#define CULAUNCH_OPCODES(OPCODE)     \
  OPCODE(CONST_I, 1, "In")           \
  OPCODE(CONST_F, 2, "Fn")           \
  OPCODE(CONST_B, 3, "Bn")           \
  OPCODE(ARG_I, 4, "Ip")             \
  OPCODE(ARG_F, 5, "Fp")             \
  OPCODE(DIM, 7, "Iax")              \
  OPCODE(STRIDE, 8, "Iax")           \
  OPCODE(CONTIGUOUS, 9, "Ba")        \
  OPCODE(ADDRESS, 10, "Ia")          \
  OPCODE(DEVICE, 11, "I")            \
  OPCODE(DEVICE_ATTRIBUTE, 12, "In") \
  OPCODE(PLACE, 13, "Ia")            \
  OPCODE(ADD, 16, "Iiit")            \
  OPCODE(SUB, 17, "Iiit")            \
  OPCODE(MUL, 18, "Iiit")            \
  OPCODE(FLOORDIV, 19, "Iiit")       \
  OPCODE(MOD, 20, "Iiit")            \
  OPCODE(POW, 21, "Iiit")            \
  OPCODE(NEG, 22, "Iit")             \
  OPCODE(ABS, 23, "Iit")             \
  OPCODE(MIN, 24, "Iiit")            \
  OPCODE(MAX, 25, "Iiit")            \
  OPCODE(SHL, 26, "Iiit")            \
  OPCODE(SHR, 27, "Iiit")            \
  OPCODE(AND, 28, "Iiit")            \
  OPCODE(OR, 29, "Iiit")             \
  OPCODE(XOR, 30, "Iiit")            \
  OPCODE(INVERT, 31, "Iit")          \
  OPCODE(CEILDIV, 32, "Iiit")        \
  OPCODE(NEXT_POW2, 33, "Iit")       \
  OPCODE(TRUEDIV, 34, "Fiit")        \
  OPCODE(BIT_LENGTH, 35, "Iit")      \
  OPCODE(EQ, 40, "Bii")              \
  OPCODE(NE, 41, "Bii")              \
  OPCODE(LT, 42, "Bii")              \
  OPCODE(LE, 43, "Bii")              \
  OPCODE(GT, 44, "Bii")              \
  OPCODE(GE, 45, "Bii")              \
  OPCODE(FEQ, 46, "Bff")             \
  OPCODE(FNE, 47, "Bff")             \
  OPCODE(FLT, 48, "Bff")             \
  OPCODE(FLE, 49, "Bff")             \
  OPCODE(FGT, 50, "Bff")             \
  OPCODE(FGE, 51, "Bff")             \
  OPCODE(NOT, 52, "Bb")              \
  OPCODE(AND_B, 53, "Bbb")           \
  OPCODE(OR_B, 54, "Bbb")            \
  OPCODE(SELECT_I, 55, "Ibii")       \
  OPCODE(SELECT_F, 56, "Fbff")       \
  OPCODE(SELECT_B, 57, "Bbbb")       \
  OPCODE(XOR_B, 58, "Bbb")           \
  OPCODE(FADD, 64, "Ffft")           \
  OPCODE(FSUB, 65, "Ffft")           \
  OPCODE(FMUL, 66, "Ffft")           \
  OPCODE(FDIV, 67, "Ffft")           \
  OPCODE(FFLOORDIV, 68, "Ffft")      \
  OPCODE(FMOD, 69, "Ffft")           \
  OPCODE(FPOW, 70, "Ffft")           \
  OPCODE(FNEG, 71, "Fft")            \
  OPCODE(FABS, 72, "Fft")            \
  OPCODE(FMIN, 73, "Ffft")           \
  OPCODE(FMAX, 74, "Ffft")           \
  OPCODE(MATH, 80, "Fmfgt")          \
  OPCODE(ISNAN, 81, "Bf")            \
  OPCODE(ISINF, 82, "Bf")            \
  OPCODE(ISFINITE, 83, "Bf")         \
  OPCODE(I2F, 88, "Fi")              \
  OPCODE(FLOOR, 89, "Ift")           \
  OPCODE(CEIL, 90, "Ift")            \
  OPCODE(TRUNC, 91, "Ift")           \
  OPCODE(ROUND, 92, "Ift")           \
  OPCODE(B2I, 93, "Ib")              \
  OPCODE(CHECK, 96, "btn*")          \
  OPCODE(RANGE, 97, "innt")          \
  OPCODE(FLOAT_RANGE, 98, "fnnt")    \
  OPCODE(DIMENSION, 99, "int")       \
  OPCODE(RAISES, 100, "Bnnmfg")      \
  OPCODE(IFEQ, 104, "Bif")           \
  OPCODE(IFNE, 105, "Bif")           \
  OPCODE(IFLT, 106, "Bif")           \
  OPCODE(IFLE, 107, "Bif")           \
  OPCODE(IFGT, 108, "Bif")           \
  OPCODE(IFGE, 109, "Bif")           \
  OPCODE(GUARD, 112, "bnn")          \
  OPCODE(EFFECTS, 113, "n")

enum class Opcode : uint8_t {
#define CULAUNCH_OPCODE(name, number, operands) k##name = number,
  CULAUNCH_OPCODES(CULAUNCH_OPCODE)
#undef CULAUNCH_OPCODE
};

// The functions of MATH, from Python's math module, by number.
#define CULAUNCH_MATH_FUNCTIONS(MATH) \
  MATH(sqrt, 0)                       \
  MATH(exp, 1)                        \
  MATH(exp2, 2)                       \
  MATH(expm1, 3)                      \
  MATH(log, 4)                        \
  MATH(log2, 5)                       \
  MATH(log10, 6)                      \
  MATH(log1p, 7)                      \
  MATH(sin, 8)                        \
  MATH(cos, 9)                        \
  MATH(tan, 10)                       \
  MATH(asin, 11)                      \
  MATH(acos, 12)                      \
  MATH(atan, 13)                      \
  MATH(atan2, 14)                     \
  MATH(sinh, 15)                      \
  MATH(cosh, 16)                      \
  MATH(tanh, 17)                      \
  MATH(asinh, 18)                     \
  MATH(acosh, 19)                     \
  MATH(atanh, 20)                     \
  MATH(hypot, 21)                     \
  MATH(erf, 22)                       \
  MATH(erfc, 23)                      \
  MATH(copysign, 24)                  \
  MATH(cbrt, 25)                      \
  MATH(fmod, 26)                      \
  MATH(lgamma, 27)                    \
  MATH(gamma, 28)                     \
  MATH(pow, 29)                       \
  MATH(remainder, 30)                 \
  MATH(nextafter, 31)                 \
  MATH(fabs, 32)                      \
  MATH(degrees, 33)                   \
  MATH(radians, 34)                   \
  MATH(ldexp, 35)

// The exceptions of CHECK, by number.
#define CULAUNCH_CHECK_EXCEPTIONS(EXCEPTION) \
  EXCEPTION(ValueError, 0)                   \
  EXCEPTION(TypeError, 1)                    \
  EXCEPTION(AssertionError, 2)               \
  EXCEPTION(IndexError, 3)                   \
  EXCEPTION(OverflowError, 4)                \
  EXCEPTION(ZeroDivisionError, 5)            \
  EXCEPTION(RuntimeError, 6)                 \
  EXCEPTION(NotImplementedError, 7)

// The version of the encoding, the first word of a program.
constexpr int64_t kVersion = 2;

#define CULAUNCH_EFFECTS(EFFECT) \
  EFFECT(kAllocate, allocate, 1) \
  EFFECT(kView, view, 2)         \
  EFFECT(kMemset, memset, 3)     \
  EFFECT(kLaunch, launch, 4)     \
  EFFECT(kCall, call, 5)         \
  EFFECT(kReturn, return, 6)

// The sources of a kernel's parameter, or of a structure's field. An array passes the address of
// its first element. An int passes the low bytes of a register, and a bool one byte. A float
// register is converted to a DLPack type. Bytes come from a constant, with fields filled in. Null
// is zeros. A tensor map describes an array. An object is a constant that is an array.
#define CULAUNCH_SOURCES(SOURCE)    \
  SOURCE(kArray, array, 0)          \
  SOURCE(kInt, int, 1)              \
  SOURCE(kFloat, float, 2)          \
  SOURCE(kBool, bool, 3)            \
  SOURCE(kBytes, bytes, 4)          \
  SOURCE(kNull, null, 5)            \
  SOURCE(kTensorMap, tensor_map, 6) \
  SOURCE(kObject, object, 7)

// The source of an argument of CALL or of a value of RETURN; from tuple on, only for RETURN. An
// argument is passed on unchanged. An element belongs to a list or tuple argument. Called is the
// result of calling a constant with the values.
#define CULAUNCH_VALUES(VALUE)  \
  VALUE(kNone, none, 0)         \
  VALUE(kInt, int, 1)           \
  VALUE(kFloat, float, 2)       \
  VALUE(kBool, bool, 3)         \
  VALUE(kArray, array, 4)       \
  VALUE(kArgument, argument, 5) \
  VALUE(kConstant, constant, 6) \
  VALUE(kTuple, tuple, 7)       \
  VALUE(kList, list, 8)         \
  VALUE(kDict, dict, 9)         \
  VALUE(kCalled, called, 10)    \
  VALUE(kElement, element, 11)

// The flags of a launch, by the names of its options.
namespace launch_flag {
#define CULAUNCH_FIELD(kind, name, flag, text) constexpr int64_t name = flag;
#define CULAUNCH_ATTRIBUTE(name, flag, attribute, value, text) constexpr int64_t name = flag;
CULAUNCH_LAUNCH_FIELDS(CULAUNCH_FIELD)
CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_ATTRIBUTE, CULAUNCH_ATTRIBUTE, CULAUNCH_ATTRIBUTE)
#undef CULAUNCH_FIELD
#undef CULAUNCH_ATTRIBUTE
}  // namespace launch_flag

#define CULAUNCH_FIELD(kind, name, flag, text) flag |
#define CULAUNCH_ATTRIBUTE(name, flag, attribute, value, text) flag |
constexpr int64_t kAllFlags = CULAUNCH_LAUNCH_FIELDS(CULAUNCH_FIELD)
    CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_ATTRIBUTE, CULAUNCH_ATTRIBUTE, CULAUNCH_ATTRIBUTE) 0;
#undef CULAUNCH_FIELD
#undef CULAUNCH_ATTRIBUTE
#define CULAUNCH_FIELD(kind, name, flag, text) +flag
#define CULAUNCH_ATTRIBUTE(name, flag, attribute, value, text) +flag
static_assert(kAllFlags == CULAUNCH_LAUNCH_FIELDS(CULAUNCH_FIELD)
                               CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_ATTRIBUTE, CULAUNCH_ATTRIBUTE,
                                                          CULAUNCH_ATTRIBUTE) &&
                  (kAllFlags & (kAllFlags + 1)) == 0,
              "each option has a flag of its own, the bit after the last one");
#undef CULAUNCH_FIELD
#undef CULAUNCH_ATTRIBUTE
// The options of the first version. Each launch stores their registers, -1 without the flag. Later
// options have registers only with their flag.
constexpr int64_t kFirstFlags = 63;

#define CULAUNCH_ENUMERATOR(enumerator, name, number) enumerator = number,
enum class EffectCode : uint8_t {
  CULAUNCH_EFFECTS(CULAUNCH_ENUMERATOR) kConstantArray =
      7,  // not in the encoding: a constant array of a launch, read before all effects
};

enum class Source : uint8_t { CULAUNCH_SOURCES(CULAUNCH_ENUMERATOR) };
enum class Value : uint8_t { CULAUNCH_VALUES(CULAUNCH_ENUMERATOR) };
#undef CULAUNCH_ENUMERATOR

}  // namespace function
