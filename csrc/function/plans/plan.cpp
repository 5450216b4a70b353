#include "function/plans/plan.h"

#include <culaunch/python_numbers.h>

#include <cmath>

#include "function/plans/number_slice.h"
#include "function/plans/python_math.h"
#include "function/program/problems.h"

namespace function {

namespace {

// Whether the condition of CHECK or a similar instruction holds.
bool Holds(const Instruction& one, const Word* r) {
  if (one.opcode == Opcode::kCHECK) return r[one.x] != 0;
  if (one.opcode == Opcode::kRANGE) {
    constexpr Word kEither = 2;
    return one.value == kEither ? Fits(r[one.x], one.y, true) || Fits(r[one.x], one.y, false)
                                : Fits(r[one.x], one.y, one.value != 0);
  }
  if (one.opcode == Opcode::kFLOAT_RANGE) return FloatFits(AsFloat(r[one.x]), one.y, one.value);
  return r[one.x] >= 1 && r[one.x] <= one.value;
}

// Whether an operation of Python's raises an exception.
Problem Raises(const Instruction& one, Word* r) {
#define CULAUNCH_EXCEPTION(name, number) PyExc_##name,
  PyObject* const exceptions[] = {CULAUNCH_CHECK_EXCEPTIONS(CULAUNCH_EXCEPTION)};
#undef CULAUNCH_EXCEPTION
  const double x = AsFloat(r[one.x]);
  const double y = one.y >= 0 ? AsFloat(r[one.y]) : 0;
  Word value = 0;
  const Problem problem = static_cast<Opcode>(one.z & 255) == Opcode::kFPOW
                              ? FloatPower(x, y, &value)
                              : CallMath(one.value, x, one.y >= 0 ? &y : nullptr, &value);
  r[one.result] = problem != Problem::kNone && PyErr_ExceptionMatches(exceptions[one.z >> 8]) != 0;
  PyErr_Clear();
  return Problem::kNone;
}

// A case of an instruction that always has a result.
#define CULAUNCH_COMPUTES(name, value) \
  case Opcode::k##name:                \
    *result = (value);                 \
    return Problem::kNone

// Compute one instruction. kNone if it is done.
inline Problem Compute(const Instruction& one, const Word* inputs, culaunch::Driver* driver,
                       int ordinal, Word* r) {
  Word* const result = r + one.result;
  switch (one.opcode) {
    CULAUNCH_COMPUTES(MIN, r[one.y] < r[one.x] ? r[one.y] : r[one.x]);
    CULAUNCH_COMPUTES(MAX, r[one.y] > r[one.x] ? r[one.y] : r[one.x]);
    CULAUNCH_COMPUTES(AND, r[one.x] & r[one.y]);
    CULAUNCH_COMPUTES(OR, r[one.x] | r[one.y]);
    CULAUNCH_COMPUTES(XOR, r[one.x] ^ r[one.y]);
    CULAUNCH_COMPUTES(INVERT, ~r[one.x]);
    CULAUNCH_COMPUTES(BIT_LENGTH, BitLength(r[one.x]));
    CULAUNCH_COMPUTES(EQ, r[one.x] == r[one.y]);
    CULAUNCH_COMPUTES(NE, r[one.x] != r[one.y]);
    CULAUNCH_COMPUTES(LT, r[one.x] < r[one.y]);
    CULAUNCH_COMPUTES(LE, r[one.x] <= r[one.y]);
    CULAUNCH_COMPUTES(GT, r[one.x] > r[one.y]);
    CULAUNCH_COMPUTES(GE, r[one.x] >= r[one.y]);
    CULAUNCH_COMPUTES(FEQ, AsFloat(r[one.x]) == AsFloat(r[one.y]));
    CULAUNCH_COMPUTES(FNE, AsFloat(r[one.x]) != AsFloat(r[one.y]));
    CULAUNCH_COMPUTES(FLT, AsFloat(r[one.x]) < AsFloat(r[one.y]));
    CULAUNCH_COMPUTES(FLE, AsFloat(r[one.x]) <= AsFloat(r[one.y]));
    CULAUNCH_COMPUTES(FGT, AsFloat(r[one.x]) > AsFloat(r[one.y]));
    CULAUNCH_COMPUTES(FGE, AsFloat(r[one.x]) >= AsFloat(r[one.y]));
    CULAUNCH_COMPUTES(IFEQ, Compare(r[one.x], AsFloat(r[one.y])) == 0);
    CULAUNCH_COMPUTES(IFNE, Compare(r[one.x], AsFloat(r[one.y])) != 0);
    CULAUNCH_COMPUTES(IFLT, Compare(r[one.x], AsFloat(r[one.y])) == -1);
    CULAUNCH_COMPUTES(IFLE, Compare(r[one.x], AsFloat(r[one.y])) <= 0);
    CULAUNCH_COMPUTES(IFGT, Compare(r[one.x], AsFloat(r[one.y])) == 1);
    CULAUNCH_COMPUTES(NOT, r[one.x] == 0);
    CULAUNCH_COMPUTES(AND_B, r[one.x] & r[one.y]);
    CULAUNCH_COMPUTES(OR_B, r[one.x] | r[one.y]);
    CULAUNCH_COMPUTES(XOR_B, r[one.x] ^ r[one.y]);
    CULAUNCH_COMPUTES(FADD, FromFloat(AsFloat(r[one.x]) + AsFloat(r[one.y])));
    CULAUNCH_COMPUTES(FSUB, FromFloat(AsFloat(r[one.x]) - AsFloat(r[one.y])));
    CULAUNCH_COMPUTES(FMUL, FromFloat(AsFloat(r[one.x]) * AsFloat(r[one.y])));
    CULAUNCH_COMPUTES(FNEG, FromFloat(-AsFloat(r[one.x])));
    CULAUNCH_COMPUTES(FABS, FromFloat(std::fabs(AsFloat(r[one.x]))));
    CULAUNCH_COMPUTES(FMIN, AsFloat(r[one.y]) < AsFloat(r[one.x]) ? r[one.y] : r[one.x]);
    CULAUNCH_COMPUTES(FMAX, AsFloat(r[one.y]) > AsFloat(r[one.x]) ? r[one.y] : r[one.x]);
    CULAUNCH_COMPUTES(ISNAN, std::isnan(AsFloat(r[one.x])));
    CULAUNCH_COMPUTES(ISINF, std::isinf(AsFloat(r[one.x])));
    CULAUNCH_COMPUTES(ISFINITE, std::isfinite(AsFloat(r[one.x])));
    CULAUNCH_COMPUTES(I2F, FromFloat(static_cast<double>(r[one.x])));
    CULAUNCH_COMPUTES(B2I, r[one.x]);
    case Opcode::kCONST_I:
    case Opcode::kCONST_F:
    case Opcode::kCONST_B:
      *result = one.value;
      return Problem::kNone;
    case Opcode::kARG_I:
    case Opcode::kARG_F:
    case Opcode::kDIM:
    case Opcode::kSTRIDE:
    case Opcode::kCONTIGUOUS:
    case Opcode::kADDRESS:
    case Opcode::kPLACE:
    case Opcode::kDEVICE:
      *result = inputs[one.value];
      return Problem::kNone;
    case Opcode::kDEVICE_ATTRIBUTE:
      *result = driver->Attribute(static_cast<CUdevice_attribute>(one.value), ordinal);
      return Problem::kNone;
    case Opcode::kADD:
      return __builtin_add_overflow(r[one.x], r[one.y], result) ? Problem::kOverflow
                                                                : Problem::kNone;
    case Opcode::kSUB:
      return __builtin_sub_overflow(r[one.x], r[one.y], result) ? Problem::kOverflow
                                                                : Problem::kNone;
    case Opcode::kMUL:
      return __builtin_mul_overflow(r[one.x], r[one.y], result) ? Problem::kOverflow
                                                                : Problem::kNone;
    case Opcode::kFLOORDIV:
      return FloorDivide(r[one.x], r[one.y], result);
    case Opcode::kMOD:
      return Modulo(r[one.x], r[one.y], result);
    case Opcode::kPOW:
      return Power(r[one.x], r[one.y], result);
    case Opcode::kNEG:
      return __builtin_sub_overflow(Word{0}, r[one.x], result) ? Problem::kOverflow
                                                               : Problem::kNone;
    case Opcode::kABS:
      if (r[one.x] < 0) {
        return __builtin_sub_overflow(Word{0}, r[one.x], result) ? Problem::kOverflow
                                                                 : Problem::kNone;
      }
      *result = r[one.x];
      return Problem::kNone;
    case Opcode::kSHL:
      return ShiftLeft(r[one.x], r[one.y], result);
    case Opcode::kSHR:
      if (r[one.y] < 0) return Problem::kNegativeShift;
      *result = r[one.x] >> (r[one.y] > 63 ? 63 : r[one.y]);
      return Problem::kNone;
    case Opcode::kCEILDIV:
      return CeilDivide(r[one.x], r[one.y], result);
    case Opcode::kNEXT_POW2:
      return NextPowerOf2(r[one.x], result);
    case Opcode::kTRUEDIV:
      return TrueDivide(r[one.x], r[one.y], result);
    case Opcode::kIFGE: {
      const int order = Compare(r[one.x], AsFloat(r[one.y]));
      *result = order == 0 || order == 1;
      return Problem::kNone;
    }
    case Opcode::kSELECT_I:
    case Opcode::kSELECT_F:
    case Opcode::kSELECT_B:
      *result = r[one.x] != 0 ? r[one.y] : r[one.z];
      return Problem::kNone;
    case Opcode::kFDIV:
      if (AsFloat(r[one.y]) == 0) return Problem::kZeroDivision;
      *result = FromFloat(AsFloat(r[one.x]) / AsFloat(r[one.y]));
      return Problem::kNone;
    case Opcode::kFFLOORDIV:
    case Opcode::kFMOD: {
      double quotient = 0;
      double rest = 0;
      const Problem problem = FloatDivMod(AsFloat(r[one.x]), AsFloat(r[one.y]), &quotient, &rest);
      *result = FromFloat(one.opcode == Opcode::kFMOD ? rest : quotient);
      return problem;
    }
    case Opcode::kFPOW:
      return FloatPower(AsFloat(r[one.x]), AsFloat(r[one.y]), result);
    case Opcode::kMATH: {
      const double y = one.y >= 0 ? AsFloat(r[one.y]) : 0;
      return CallMath(one.value, AsFloat(r[one.x]), one.y >= 0 ? &y : nullptr, result);
    }
    case Opcode::kRAISES:
      return Raises(one, r);
    case Opcode::kFLOOR:
      return WholeOf(std::floor(AsFloat(r[one.x])), result);
    case Opcode::kCEIL:
      return WholeOf(std::ceil(AsFloat(r[one.x])), result);
    case Opcode::kTRUNC:
      return WholeOf(std::trunc(AsFloat(r[one.x])), result);
    case Opcode::kROUND:
      return WholeOf(std::nearbyint(AsFloat(r[one.x])), result);
    default:
      return Problem::kNone;
  }
}

#undef CULAUNCH_COMPUTES

}  // namespace

PlanEnd RunPlan(PyObject* self, const Program& program, const Word* inputs,
                culaunch::Driver* driver, int ordinal, Word* registers, int32_t* leaf) {
  int32_t number = 0;
  for (;;) {
    const Block& block = program.blocks[static_cast<size_t>(number)];
    for (uint32_t i = block.first; i < block.end; ++i) {
      const Instruction& one = program.instructions[i];
      Problem problem = Problem::kNone;
      if (HasCheck(one.opcode)) {
        if (Holds(one, registers)) continue;
        problem = Problem::kCheck;
      } else {
        problem = Compute(one, inputs, driver, ordinal, registers);
      }
      if (CULAUNCH_UNLIKELY(problem != Problem::kNone)) {
        RaiseProblem(self, program, one, problem, registers);
        return PlanEnd::kFailed;
      }
    }
    if (block.condition < 0) {
      *leaf = number;
      return PlanEnd::kLeaf;
    }
    number = registers[block.condition] != 0 ? block.if_true : block.if_false;
    if (number < 0) return PlanEnd::kUnknown;
  }
}

bool RunSlice(const Program& program, const NumberSlice& slice, const Word* inputs,
              Word* registers) {
  for (const uint32_t index : slice.instructions) {
    const Instruction& one = program.instructions[index];
    const bool is_good = HasCheck(one.opcode)
                             ? Holds(one, registers)
                             : Compute(one, inputs, nullptr, 0, registers) == Problem::kNone;
    if (CULAUNCH_UNLIKELY(!is_good)) return false;
  }
  for (const NumberSlice::Guard& guard : slice.guards) {
    if ((registers[guard.condition] != 0) != guard.is_true) return false;
  }
  return true;
}
}  // namespace function
