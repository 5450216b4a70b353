#include "function/plan.h"

#include <culaunch/python_numbers.h>

#include <cmath>
#include <cstring>
#include <string>

#include "python/upcalls.h"

namespace function {

using namespace culaunch::numbers;

namespace {

double AsFloat(Word word) {
  double value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

Word FromFloat(double value) {
  Word word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

// What Python itself computes. The rules of its math are many, and a plan is run once for the
// numbers that come again and again.
Problem Ask(const Ref& result, Word* word) {
  if (!result) return Problem::kRaised;
  if (!PyFloat_Check(result.get())) {
    PyErr_SetString(PyExc_ValueError, "the result is no float");
    return Problem::kRaised;
  }
  *word = FromFloat(PyFloat_AsDouble(result.get()));
  return Problem::kNone;
}

Problem FloatPower(double x, double y, Word* word) {
  const Ref base(PyFloat_FromDouble(x));
  const Ref exponent(PyFloat_FromDouble(y));
  if (!base || !exponent) return Problem::kRaised;
  return Ask(Ref(PyNumber_Power(base.get(), exponent.get(), Py_None)), word);
}

Problem TrueDivide(Word x, Word y, Word* word) {
  if (y == 0) return Problem::kZeroDivision;
  constexpr Word kExact = Word{1} << 53;
  if (x >= -kExact && x <= kExact && y >= -kExact && y <= kExact) {
    *word = FromFloat(static_cast<double>(x) / static_cast<double>(y));
    return Problem::kNone;
  }
  const Ref dividend(PyLong_FromLongLong(x));
  const Ref divisor(PyLong_FromLongLong(y));
  if (!dividend || !divisor) return Problem::kRaised;
  return Ask(Ref(PyNumber_TrueDivide(dividend.get(), divisor.get())), word);
}

Problem CallMath(Word number, double x, const double* y, Word* word) {
#define CULAUNCH_MATH_NAME(name, number) #name,
  static constexpr const char* names[] = {CULAUNCH_MATH_FUNCTIONS(CULAUNCH_MATH_NAME)};
#undef CULAUNCH_MATH_NAME
  const char* name = names[number];
  const Ref math = Import(modules::kMath);
  if (!math) return Problem::kRaised;
  return Ask(Ref(y == nullptr ? PyObject_CallMethod(math.get(), name, "d", x)
                              : PyObject_CallMethod(math.get(), name, "dd", x, *y)),
             word);
}

bool HasCheck(Opcode opcode) { return opcode >= Opcode::kCHECK && opcode <= Opcode::kDIMENSION; }

// Whether what CHECK and its like ask for is so.
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

PyObject* ObjectOf(Word word, RegisterType type) {
  if (type == RegisterType::kFloat) return PyFloat_FromDouble(AsFloat(word));
  if (type == RegisterType::kBool) return PyBool_FromLong(word != 0);
  return PyLong_FromLongLong(word);
}

// Raise a check's exception; {0}, {1}, ... in its text are the registers, and {{ is a brace.
void RaiseCheck(const Program& program, const Instruction& one, const Word* registers) {
  const Check& check = program.checks[static_cast<size_t>(one.value)];
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(program.Text(one.text), &size);
  if (text == nullptr) return;
  const std::string message(text, static_cast<size_t>(size));
  std::string filled;
  for (size_t at = 0; at < message.size();) {
    size_t end = at + 1;
    size_t number = 0;
    if (message.compare(at, 2, "{{") == 0) ++at;
    while (message[at] == '{' && end > at && end < message.size() && message[end] >= '0' &&
           message[end] <= '9' && end < at + 4) {
      number = number * 10 + static_cast<size_t>(message[end++] - '0');
    }
    const bool is_field = end > at + 1 && end < message.size() && message[end] == '}' &&
                          number < check.registers.size();
    if (!is_field) {
      filled += message[at++];
      continue;
    }
    const Ref value(ObjectOf(registers[check.registers[number]], check.types[number]));
    const Ref spelled(value ? PyObject_Repr(value.get()) : nullptr);
    const char* shown = spelled ? PyUnicode_AsUTF8AndSize(spelled.get(), nullptr) : nullptr;
    if (shown == nullptr) return;
    filled += shown;
    at = end + 1;
  }
#define CULAUNCH_EXCEPTION(name, number) PyExc_##name,
  PyObject* const exceptions[] = {CULAUNCH_CHECK_EXCEPTIONS(CULAUNCH_EXCEPTION)};
#undef CULAUNCH_EXCEPTION
  PyErr_SetString(exceptions[check.exception], filled.c_str());
}

// Set an exception of Python's own kind, in few words: the subclass has more.
void RaisePlainly(const Program& program, const Instruction& one, Problem problem,
                  const Word* registers) {
  if (one.opcode == Opcode::kCHECK) return RaiseCheck(program, one, registers);
  if (one.opcode == Opcode::kDIMENSION) {
    PyErr_Format(PyExc_ValueError, "a dimension must be from 1 to %lld (got %lld)",
                 static_cast<long long>(one.value), static_cast<long long>(registers[one.x]));
  } else if (HasCheck(one.opcode)) {
    const Ref value(one.opcode == Opcode::kRANGE ? PyLong_FromLongLong(registers[one.x])
                                                 : PyFloat_FromDouble(AsFloat(registers[one.x])));
    if (!value) return;
    PyErr_Format(PyExc_OverflowError, "%R does not fit %d bits", value.get(),
                 one.opcode == Opcode::kRANGE ? 8 * one.y : static_cast<int>(one.value));
  } else if (problem == Problem::kOverflow) {
    PyErr_SetString(PyExc_OverflowError, "the result does not fit 64 bits");
  } else if (problem == Problem::kZeroDivision) {
    PyErr_SetString(PyExc_ZeroDivisionError, "division by zero");
  } else if (problem == Problem::kNegativeShift) {
    PyErr_SetString(PyExc_ValueError, "negative shift count");
  } else if (problem == Problem::kNegativePower) {
    PyErr_SetString(PyExc_ValueError, "an int to a negative power is no int");
  } else if (problem == Problem::kNan) {
    PyErr_SetString(PyExc_ValueError, "cannot convert float NaN to integer");
  } else if (problem == Problem::kInfinity) {
    PyErr_SetString(PyExc_OverflowError, "cannot convert float infinity to integer");
  }
  PrefixError(program.Text(one.text));
}

long long DetailOf(const Program& program, const Instruction& one) {
  switch (one.opcode) {
    case Opcode::kCHECK:
      return program.checks[static_cast<size_t>(one.value)].exception;
    case Opcode::kMATH:
    case Opcode::kDIMENSION:
      return one.value;
    case Opcode::kRANGE:
    case Opcode::kFLOAT_RANGE:
      return one.y | one.value << 8;
    default:
      return 0;
  }
}

// The values of an instruction's operands, as a tuple.
Ref ValuesOf(const Program& program, const Instruction& one, const Word* registers) {
  const Ref values(PyList_New(0));
  const auto add = [&](int32_t index, RegisterType type) {
    const Ref value(ObjectOf(registers[index], type));
    return value && PyList_Append(values.get(), value.get()) == 0;
  };
  if (!values) return Ref();
  if (one.opcode == Opcode::kCHECK) {
    const Check& check = program.checks[static_cast<size_t>(one.value)];
    for (size_t i = 0; i < check.registers.size(); ++i) {
      if (!add(check.registers[i], check.types[i])) return Ref();
    }
    return Ref(PyList_AsTuple(values.get()));
  }
  const int32_t operands[] = {one.x, HasCheck(one.opcode) ? -1 : one.y, one.z};
  size_t next = 0;
  for (const char* form = OperandsOf(one.opcode); *form != 0; ++form) {
    const RegisterType type = *form == 'i'                   ? RegisterType::kInt
                              : *form == 'f' || *form == 'g' ? RegisterType::kFloat
                              : *form == 'b'                 ? RegisterType::kBool
                                                             : RegisterType::kUndefined;
    if (type == RegisterType::kUndefined) continue;
    const int32_t index = operands[next++];
    if (index >= 0 && !add(index, type)) return Ref();
  }
  return Ref(PyList_AsTuple(values.get()));
}

// Raise what is wrong: the function's own Python has the words.
CULAUNCH_RARE void RaiseProblem(PyObject* self, const Program& program, const Instruction& one,
                                Problem problem, const Word* registers) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Ref values = ValuesOf(program, one, registers);
  PyObject* text = program.Text(one.text);
  const Ref done(values ? PyObject_CallMethod(self, methods::kFail, "iLOO",
                                              static_cast<int>(one.opcode), DetailOf(program, one),
                                              text != nullptr ? text : Py_None, values.get())
                        : nullptr);
  if (PyErr_Occurred() != nullptr) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return;
  }
  PyErr_Restore(type, value, trace);
  RaisePlainly(program, one, problem, registers);
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

CULAUNCH_RARE void PrefixError(PyObject* text) {
  if (text == nullptr) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref held_type(type), held_trace(trace);
  Ref held(value);
  // The exception stays what it is, with its other attributes.
  const Ref args(value != nullptr ? PyObject_GetAttrString(value, "args") : nullptr);
  const Py_ssize_t count = args && PyTuple_Check(args.get()) ? PyTuple_Size(args.get()) : 0;
  PyObject* first = count > 0 ? PyTuple_GetItem(args.get(), 0) : nullptr;
  if (first != nullptr && PyUnicode_Check(first)) {
    const Ref message(PyUnicode_FromFormat("%U: %U", text, first));
    const Ref renewed(PyTuple_New(count));
    for (Py_ssize_t i = 1; renewed && i < count; ++i) {
      PyTuple_SetItem(renewed.get(), i, Ref::Borrow(PyTuple_GetItem(args.get(), i)).release());
    }
    if (message && renewed) {
      PyTuple_SetItem(renewed.get(), 0, Ref::Borrow(message.get()).release());
      PyObject_SetAttrString(value, "args", renewed.get());
    }
  }
  PyErr_Clear();
  if (held) PyErr_SetObject(held_type.get(), held.get());
}

}  // namespace function
