#include "function/plan.h"

#include <culaunch/python_numbers.h>

#include <cmath>

#include "function/problems.h"
#include "function/python_math.h"

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

// Compute one instruction. kNone where it is done.
inline Problem Compute(const Instruction& one, const Word* inputs, culaunch::Driver* driver,
                       int ordinal, Word* r) {
  Word* const result = r + one.result;
  switch (one.opcode) {
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
    case Opcode::kMIN:
      *result = r[one.y] < r[one.x] ? r[one.y] : r[one.x];
      return Problem::kNone;
    case Opcode::kMAX:
      *result = r[one.y] > r[one.x] ? r[one.y] : r[one.x];
      return Problem::kNone;
    case Opcode::kSHL:
      return ShiftLeft(r[one.x], r[one.y], result);
    case Opcode::kSHR:
      if (r[one.y] < 0) return Problem::kNegativeShift;
      *result = r[one.x] >> (r[one.y] > 63 ? 63 : r[one.y]);
      return Problem::kNone;
    case Opcode::kAND:
      *result = r[one.x] & r[one.y];
      return Problem::kNone;
    case Opcode::kOR:
      *result = r[one.x] | r[one.y];
      return Problem::kNone;
    case Opcode::kXOR:
      *result = r[one.x] ^ r[one.y];
      return Problem::kNone;
    case Opcode::kINVERT:
      *result = ~r[one.x];
      return Problem::kNone;
    case Opcode::kCEILDIV:
      return CeilDivide(r[one.x], r[one.y], result);
    case Opcode::kNEXT_POW2:
      return NextPowerOf2(r[one.x], result);
    case Opcode::kTRUEDIV:
      return TrueDivide(r[one.x], r[one.y], result);
    case Opcode::kBIT_LENGTH:
      *result = BitLength(r[one.x]);
      return Problem::kNone;
    case Opcode::kEQ:
      *result = r[one.x] == r[one.y];
      return Problem::kNone;
    case Opcode::kNE:
      *result = r[one.x] != r[one.y];
      return Problem::kNone;
    case Opcode::kLT:
      *result = r[one.x] < r[one.y];
      return Problem::kNone;
    case Opcode::kLE:
      *result = r[one.x] <= r[one.y];
      return Problem::kNone;
    case Opcode::kGT:
      *result = r[one.x] > r[one.y];
      return Problem::kNone;
    case Opcode::kGE:
      *result = r[one.x] >= r[one.y];
      return Problem::kNone;
    case Opcode::kFEQ:
      *result = AsFloat(r[one.x]) == AsFloat(r[one.y]);
      return Problem::kNone;
    case Opcode::kFNE:
      *result = AsFloat(r[one.x]) != AsFloat(r[one.y]);
      return Problem::kNone;
    case Opcode::kFLT:
      *result = AsFloat(r[one.x]) < AsFloat(r[one.y]);
      return Problem::kNone;
    case Opcode::kFLE:
      *result = AsFloat(r[one.x]) <= AsFloat(r[one.y]);
      return Problem::kNone;
    case Opcode::kFGT:
      *result = AsFloat(r[one.x]) > AsFloat(r[one.y]);
      return Problem::kNone;
    case Opcode::kFGE:
      *result = AsFloat(r[one.x]) >= AsFloat(r[one.y]);
      return Problem::kNone;
    case Opcode::kIFEQ:
      *result = Compare(r[one.x], AsFloat(r[one.y])) == 0;
      return Problem::kNone;
    case Opcode::kIFNE:
      *result = Compare(r[one.x], AsFloat(r[one.y])) != 0;
      return Problem::kNone;
    case Opcode::kIFLT:
      *result = Compare(r[one.x], AsFloat(r[one.y])) == -1;
      return Problem::kNone;
    case Opcode::kIFLE:
      *result = Compare(r[one.x], AsFloat(r[one.y])) <= 0;
      return Problem::kNone;
    case Opcode::kIFGT:
      *result = Compare(r[one.x], AsFloat(r[one.y])) == 1;
      return Problem::kNone;
    case Opcode::kIFGE: {
      const int order = Compare(r[one.x], AsFloat(r[one.y]));
      *result = order == 0 || order == 1;
      return Problem::kNone;
    }
    case Opcode::kNOT:
      *result = r[one.x] == 0;
      return Problem::kNone;
    case Opcode::kAND_B:
      *result = r[one.x] & r[one.y];
      return Problem::kNone;
    case Opcode::kOR_B:
      *result = r[one.x] | r[one.y];
      return Problem::kNone;
    case Opcode::kXOR_B:
      *result = r[one.x] ^ r[one.y];
      return Problem::kNone;
    case Opcode::kSELECT_I:
    case Opcode::kSELECT_F:
    case Opcode::kSELECT_B:
      *result = r[one.x] != 0 ? r[one.y] : r[one.z];
      return Problem::kNone;
    case Opcode::kFADD:
      *result = FromFloat(AsFloat(r[one.x]) + AsFloat(r[one.y]));
      return Problem::kNone;
    case Opcode::kFSUB:
      *result = FromFloat(AsFloat(r[one.x]) - AsFloat(r[one.y]));
      return Problem::kNone;
    case Opcode::kFMUL:
      *result = FromFloat(AsFloat(r[one.x]) * AsFloat(r[one.y]));
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
    case Opcode::kFNEG:
      *result = FromFloat(-AsFloat(r[one.x]));
      return Problem::kNone;
    case Opcode::kFABS:
      *result = FromFloat(std::fabs(AsFloat(r[one.x])));
      return Problem::kNone;
    case Opcode::kFMIN:
      *result = AsFloat(r[one.y]) < AsFloat(r[one.x]) ? r[one.y] : r[one.x];
      return Problem::kNone;
    case Opcode::kFMAX:
      *result = AsFloat(r[one.y]) > AsFloat(r[one.x]) ? r[one.y] : r[one.x];
      return Problem::kNone;
    case Opcode::kMATH: {
      const double y = one.y >= 0 ? AsFloat(r[one.y]) : 0;
      return CallMath(one.value, AsFloat(r[one.x]), one.y >= 0 ? &y : nullptr, result);
    }
    case Opcode::kRAISES:
      return Raises(one, r);
    case Opcode::kISNAN:
      *result = std::isnan(AsFloat(r[one.x]));
      return Problem::kNone;
    case Opcode::kISINF:
      *result = std::isinf(AsFloat(r[one.x]));
      return Problem::kNone;
    case Opcode::kISFINITE:
      *result = std::isfinite(AsFloat(r[one.x]));
      return Problem::kNone;
    case Opcode::kI2F:
      *result = FromFloat(static_cast<double>(r[one.x]));
      return Problem::kNone;
    case Opcode::kB2I:
      *result = r[one.x];
      return Problem::kNone;
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
}  // namespace function
