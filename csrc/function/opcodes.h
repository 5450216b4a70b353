// The instructions of a program: their numbers, names and operands. docs/dev/functions.md says what
// each does. Python reads this list through _core.program_format().
#pragma once

#include <cstdint>

namespace function {

// What an operand is:
//   I F B  the register that the result goes to: an int, a float, a bool
//   i f b  a register that is read
//   n      a number     l  a leaf of the arguments     a  an array argument     x  an axis of it
//   m      the number of a function of Python's math     t  a text (-1: none)
//   *      more operands follow, as docs/dev/functions.md has them
#define CULAUNCH_OPCODES(OPCODE)     \
  OPCODE(CONST_I, 1, "In")           \
  OPCODE(CONST_F, 2, "Fn")           \
  OPCODE(CONST_B, 3, "Bn")           \
  OPCODE(ARG_I, 4, "Il")             \
  OPCODE(ARG_F, 5, "Fl")             \
  OPCODE(DIM, 6, "Iax")              \
  OPCODE(STRIDE, 7, "Iax")           \
  OPCODE(CONTIGUOUS, 8, "Ba")        \
  OPCODE(ADDRESS, 9, "Ia")           \
  OPCODE(DEVICE, 10, "I")            \
  OPCODE(DEVICE_ATTRIBUTE, 11, "In") \
  OPCODE(ADD, 20, "Iiit")            \
  OPCODE(SUB, 21, "Iiit")            \
  OPCODE(MUL, 22, "Iiit")            \
  OPCODE(FLOORDIV, 23, "Iiit")       \
  OPCODE(MOD, 24, "Iiit")            \
  OPCODE(POW, 25, "Iiit")            \
  OPCODE(NEG, 26, "Iit")             \
  OPCODE(ABS, 27, "Iit")             \
  OPCODE(MIN, 28, "Iii")             \
  OPCODE(MAX, 29, "Iii")             \
  OPCODE(SHL, 30, "Iiit")            \
  OPCODE(SHR, 31, "Iiit")            \
  OPCODE(AND, 32, "Iii")             \
  OPCODE(OR, 33, "Iii")              \
  OPCODE(XOR, 34, "Iii")             \
  OPCODE(INVERT, 35, "Ii")           \
  OPCODE(CEILDIV, 36, "Iiit")        \
  OPCODE(NEXT_POW2, 37, "Iit")       \
  OPCODE(TRUEDIV, 38, "Fiit")        \
  OPCODE(BIT_LENGTH, 39, "Ii")       \
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
  OPCODE(IFEQ, 52, "Bif")            \
  OPCODE(IFNE, 53, "Bif")            \
  OPCODE(IFLT, 54, "Bif")            \
  OPCODE(IFLE, 55, "Bif")            \
  OPCODE(IFGT, 56, "Bif")            \
  OPCODE(IFGE, 57, "Bif")            \
  OPCODE(NOT, 60, "Bb")              \
  OPCODE(AND_B, 61, "Bbb")           \
  OPCODE(OR_B, 62, "Bbb")            \
  OPCODE(XOR_B, 63, "Bbb")           \
  OPCODE(SELECT_I, 64, "Ibii")       \
  OPCODE(SELECT_F, 65, "Fbff")       \
  OPCODE(SELECT_B, 66, "Bbbb")       \
  OPCODE(FADD, 70, "Fff")            \
  OPCODE(FSUB, 71, "Fff")            \
  OPCODE(FMUL, 72, "Fff")            \
  OPCODE(FDIV, 73, "Ffft")           \
  OPCODE(FFLOORDIV, 74, "Ffft")      \
  OPCODE(FMOD, 75, "Ffft")           \
  OPCODE(FPOW, 76, "Ffft")           \
  OPCODE(FNEG, 77, "Ff")             \
  OPCODE(FABS, 78, "Ff")             \
  OPCODE(FMIN, 79, "Fff")            \
  OPCODE(FMAX, 80, "Fff")            \
  OPCODE(MATH1, 81, "Fmft")          \
  OPCODE(MATH2, 82, "Fmfft")         \
  OPCODE(ISNAN, 83, "Bf")            \
  OPCODE(ISINF, 84, "Bf")            \
  OPCODE(ISFINITE, 85, "Bf")         \
  OPCODE(I2F, 90, "Fi")              \
  OPCODE(B2I, 91, "Ib")              \
  OPCODE(FLOOR, 92, "Ift")           \
  OPCODE(CEIL, 93, "Ift")            \
  OPCODE(TRUNC, 94, "Ift")           \
  OPCODE(ROUND, 95, "Ift")           \
  OPCODE(CHECK, 100, "btn*")         \
  OPCODE(RANGE, 101, "innt")         \
  OPCODE(FRANGE, 102, "fnt")         \
  /* the end of a block */           \
  OPCODE(GUARD, 110, "bnnt")         \
  OPCODE(EFFECTS, 111, "n")          \
  /* effects */                      \
  OPCODE(ALLOCATE, 120, "*")         \
  OPCODE(VIEW, 121, "*")             \
  OPCODE(MEMSET, 122, "*")           \
  OPCODE(LAUNCH, 123, "*")           \
  OPCODE(CALL, 124, "*")             \
  OPCODE(RETURN, 125, "*")           \
  OPCODE(CONSTANT_ARRAY, 126, "*")

enum class Opcode : uint8_t {
#define CULAUNCH_OPCODE(name, number, operands) k##name = number,
  CULAUNCH_OPCODES(CULAUNCH_OPCODE)
#undef CULAUNCH_OPCODE
};

// The functions of MATH1 and MATH2, by their number: Python's math has them.
#define CULAUNCH_MATH_FUNCTIONS(X)                                                                 \
  X(sqrt)                                                                                          \
  X(exp)                                                                                           \
  X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan)   \
      X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(erf) X(erfc) X(gamma) X(lgamma) X(cbrt) \
          X(fabs) X(degrees) X(radians) X(ulp) X(atan2) X(hypot) X(copysign) X(fmod) X(pow)        \
              X(remainder) X(nextafter)

// What CHECK raises, by its number.
#define CULAUNCH_CHECK_EXCEPTIONS(X)                                                    \
  X(ValueError)                                                                         \
  X(TypeError)                                                                          \
  X(AssertionError) X(OverflowError) X(ZeroDivisionError) X(IndexError) X(RuntimeError) \
      X(NotImplementedError)

// What a kernel's parameter is made of.
enum class Source : uint8_t {
  kArray,      // an array: the address of its first element
  kInt,        // an int register, its low bytes
  kFloat,      // a float register, as float or double
  kFloat16,    // likewise, as float16
  kBfloat16,   // likewise, as bfloat16
  kBool,       // a bool register, one byte
  kBytes,      // a constant's bytes with parts that are filled in
  kNull,       // zeros
  kTensorMap,  // a tensor map over an array
};

// What an argument of CALL is.
enum class Given : uint8_t { kArray, kInt, kFloat, kBool, kConstant };

// What RETURN gives.
enum class Result : uint8_t {
  kNone,
  kInt,
  kFloat,
  kBool,
  kArray,
  kArgument,  // a leaf as it came
  kTuple,
  kList,
  kConstant,
};

// The flags of LAUNCH.
constexpr int64_t kCooperative = 1;
constexpr int64_t kProgrammatic = 2;
constexpr int64_t kHasPriority = 4;
constexpr int64_t kHasCluster = 8;
constexpr int64_t kHasPreferredCluster = 16;

}  // namespace function
