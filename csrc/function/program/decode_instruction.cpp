// The instructions of a program's plan, and the inputs that they need.
#include <algorithm>

#include "arguments/operands.h"
#include "function/program/decoder.h"

namespace function {

namespace {

#define CULAUNCH_COUNT(name, number) +1
constexpr int64_t kMathFunctions = 0 CULAUNCH_MATH_FUNCTIONS(CULAUNCH_COUNT);
constexpr int64_t kCheckExceptions = 0 CULAUNCH_CHECK_EXCEPTIONS(CULAUNCH_COUNT);
#undef CULAUNCH_COUNT

}  // namespace

const char* OperandsOf(Opcode opcode) {
  switch (opcode) {
#define CULAUNCH_OPCODE(name, number, operands) \
  case Opcode::k##name:                         \
    return operands;
    CULAUNCH_OPCODES(CULAUNCH_OPCODE)
#undef CULAUNCH_OPCODE
  }
  return nullptr;
}

const char* NameOfOpcode(Opcode opcode) {
  switch (opcode) {
#define CULAUNCH_OPCODE(name, number, operands) \
  case Opcode::k##name:                         \
    return #name;
    CULAUNCH_OPCODES(CULAUNCH_OPCODE)
#undef CULAUNCH_OPCODE
  }
  return "?";
}

void Decoder::DecodeInstruction(Opcode opcode, const char* operands, WordReader& reader) {
  Instruction made = {opcode, -1, -1, -1, -1, -1, 0};
  int32_t* const places[] = {&made.x, &made.y, &made.z};
  int used = 0;
  char result = 0;
  WordReader at_result = reader;
  for (const char* operand = operands; *operand != 0; ++operand) {
    switch (*operand) {
      case 'I':
      case 'F':
      case 'B':
        // The result is defined last, because an instruction does not read its own result.
        result = *operand;
        at_result = reader;
        reader.Next();
        break;
      case 'i':
        *places[used++] = Int(reader);
        break;
      case 'f':
        *places[used++] = Register(reader, RegisterType::kFloat);
        break;
      case 'b':
        *places[used++] = Register(reader, RegisterType::kBool);
        break;
      case 'g': {
        WordReader copy = reader;
        if (copy.Next() == -1) {
          reader = copy;
        } else {
          *places[used++] = Register(reader, RegisterType::kFloat);
        }
        break;
      }
      case 'n':
        if (opcode == Opcode::kRAISES) {
          // The number of the operation, then its exceptions.
          const int64_t number = reader.NextBelow(256, "operand");
          made.z = made.z < 0 ? static_cast<int32_t>(number)
                              : made.z | static_cast<int32_t>(number << 8);
          break;
        }
        // RANGE and FLOAT_RANGE have two numbers. The first is below 256.
        if ((opcode == Opcode::kRANGE || opcode == Opcode::kFLOAT_RANGE) && used == 1) {
          *places[used++] = static_cast<int32_t>(reader.NextBelow(256, "operand"));
        } else {
          made.value = reader.Next();
        }
        break;
      case 'p':
        made.value = NextParameter(reader);
        break;
      case 'a':
        made.value =
            reader.NextBelow(static_cast<int64_t>(program_.argument_arrays), "argument array");
        break;
      case 'x':
        made.y = static_cast<int32_t>(reader.NextBelow(operands::kMaxDims, "axis"));
        break;
      case 'm':
        made.value = reader.NextBelow(kMathFunctions, "math function");
        break;
      case 't':
        made.text = Text(reader);
        break;
      default:
        DecodeCheck(&made, reader);
    }
  }
  Limit(opcode, made);
  if (result != 0) {
    made.result = Define(at_result, result == 'I'   ? RegisterType::kInt
                                    : result == 'F' ? RegisterType::kFloat
                                                    : RegisterType::kBool);
  }
  SetInput(&made);
  program_.instructions.push_back(made);
}

void Decoder::Limit(Opcode opcode, const Instruction& made) {
  bool is_good = true;
  if (opcode == Opcode::kCONST_B) is_good = made.value == 0 || made.value == 1;
  if (opcode == Opcode::kDEVICE_ATTRIBUTE) is_good = made.value > 0 && made.value < 4096;
  if (opcode == Opcode::kRANGE) {
    is_good = (made.y == 1 || made.y == 2 || made.y == 4 || made.y == 8) && made.value >= 0 &&
              made.value <= 2;
  }
  if (opcode == Opcode::kRAISES) {
    const auto inner = static_cast<Opcode>(made.z & 255);
    is_good = (inner == Opcode::kMATH || (inner == Opcode::kFPOW && made.y >= 0)) &&
              made.z >> 8 < kCheckExceptions;
  }
  if (opcode == Opcode::kFLOAT_RANGE) is_good = IsFloatType(made.y, made.value);
  if (!is_good) throw Wrong(std::string(NameOfOpcode(opcode)) + " has an operand out of range");
}

bool Decoder::IsFloatType(int64_t code, int64_t bits) {
  constexpr int64_t kFloat = 2;
  constexpr int64_t kBfloat = 4;
  return (code == kFloat && (bits == 16 || bits == 32 || bits == 64)) ||
         (code == kBfloat && bits == 16);
}

int64_t Decoder::NextParameter(WordReader& reader) {
  const int64_t parameter =
      reader.NextBelow(static_cast<int64_t>(Program::kMostParameters), "parameter");
  program_.parameters = std::max(program_.parameters, static_cast<int32_t>(parameter + 1));
  return parameter;
}

int32_t Decoder::InputOf(Input::Kind kind, int64_t index, int64_t axis) {
  const auto key = std::make_tuple(static_cast<int>(kind), index, axis);
  const auto found = inputs_.find(key);
  if (found != inputs_.end()) return found->second;
  const auto number = static_cast<int32_t>(program_.inputs.size());
  program_.inputs.push_back({kind, static_cast<int32_t>(index), static_cast<int32_t>(axis)});
  inputs_[key] = number;
  return number;
}

void Decoder::SetInput(Instruction* made) {
  const int64_t index = made->value;
  switch (made->opcode) {
    case Opcode::kARG_I:
      made->value = InputOf(Input::kInt, index, 0);
      break;
    case Opcode::kARG_F:
      made->value = InputOf(Input::kFloat, index, 0);
      break;
    case Opcode::kDIM:
      made->value = InputOf(Input::kDim, index, made->y);
      break;
    case Opcode::kSTRIDE:
      made->value = InputOf(Input::kStride, index, made->y);
      break;
    case Opcode::kCONTIGUOUS:
      made->value = InputOf(Input::kContiguous, index, 0);
      break;
    case Opcode::kADDRESS:
      made->value = InputOf(Input::kAddress, index, 0);
      break;
    case Opcode::kPLACE:
      made->value = InputOf(Input::kPlace, index, 0);
      break;
    case Opcode::kDEVICE:
      made->value = InputOf(Input::kDevice, 0, 0);
      break;
    case Opcode::kDEVICE_ATTRIBUTE:
      made->x = InputOf(Input::kDevice, 0, 0);
      break;
    default:
      break;
  }
}

void Decoder::DecodeCheck(Instruction* made, WordReader& reader) {
  if (made->value < 0 || made->value >= kCheckExceptions) {
    throw Wrong("there is no exception " + std::to_string(made->value));
  }
  if (made->text < 0) throw Wrong("a check has no text");
  Check check;
  check.exception = static_cast<int>(made->value);
  const int64_t count = reader.NextBelow(static_cast<int64_t>(reader.left()), "registers");
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = reader.NextBelow(static_cast<int64_t>(program_.registers), "register");
    const RegisterType type = (*types_)[static_cast<size_t>(index)];
    if (type == RegisterType::kUndefined) throw Wrong("a check shows an undefined register");
    check.registers.push_back(static_cast<int32_t>(index));
    check.types.push_back(type);
  }
  made->value = static_cast<int64_t>(program_.checks.size());
  program_.checks.push_back(std::move(check));
}

void Decoder::OrderInputs() {
  std::vector<Input>& inputs = program_.inputs;
  std::vector<int32_t> order(inputs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto rank = [&](int32_t i) {
    const Input& input = inputs[static_cast<size_t>(i)];
    const bool is_number = input.kind == Input::kInt || input.kind == Input::kFloat;
    const int group = is_number ? 1 : input.kind == Input::kDevice ? 2 : 0;
    return std::make_tuple(group, input.index, i);
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return rank(a) < rank(b); });
  std::vector<int32_t> places(inputs.size());
  std::vector<Input> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    places[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
    sorted.push_back(inputs[static_cast<size_t>(order[i])]);
  }
  inputs = std::move(sorted);
  for (Instruction& one : program_.instructions) {
    const bool is_input = one.opcode >= Opcode::kARG_I && one.opcode <= Opcode::kDEVICE;
    if (is_input || one.opcode == Opcode::kPLACE) {
      one.value = places[static_cast<size_t>(one.value)];
    } else if (one.opcode == Opcode::kDEVICE_ATTRIBUTE) {
      one.x = places[static_cast<size_t>(one.x)];
    }
  }
  std::fill(std::begin(program_.number_inputs), std::end(program_.number_inputs), -1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    const auto index = static_cast<size_t>(input.index);
    if (input.kind == Input::kInt || input.kind == Input::kFloat) {
      if (program_.number_inputs[index] >= 0) throw Wrong("a parameter is an int and a float");
      program_.number_inputs[index] = static_cast<int32_t>(i);
    } else if (input.kind == Input::kDevice) {
      program_.device_input = static_cast<int32_t>(i);
    } else {
      ArgumentArray& array = program_.of_arrays[index];
      if (array.end_input == 0) array.first_input = static_cast<uint32_t>(i);
      array.end_input = static_cast<uint32_t>(i + 1);
    }
  }
}

}  // namespace function
