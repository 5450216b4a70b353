// From words to a program. Programs come from files, too: whatever the words are, what comes out
// reads and writes nothing that is not its own.
#include <culaunch/launch_config.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <tuple>

#include "arguments/element_types.h"
#include "arguments/operands.h"
#include "function/program.h"
#include "launch/kernel_type.h"

namespace function {

namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMostRegisters = 1 << 16;
constexpr int64_t kMostArrays = 1 << 12;
constexpr int64_t kMostBlocks = 1 << 12;
constexpr int64_t kMostLeaves = 1 << 12;
constexpr int64_t kMostStates = 1 << 24;  // blocks times registers
constexpr int64_t kMostParameterBytes = 1 << 16;
constexpr int kMostNesting = 16;

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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

#define CULAUNCH_COUNT(name) +1
constexpr int64_t kMathFunctions = 0 CULAUNCH_MATH_FUNCTIONS(CULAUNCH_COUNT);
constexpr int64_t kCheckExceptions = 0 CULAUNCH_CHECK_EXCEPTIONS(CULAUNCH_COUNT);
#undef CULAUNCH_COUNT

// Reads words one after the other, up to an end.
class Reader {
 public:
  Reader(const char* words, size_t count) : words_(words), count_(count) {}

  int64_t Next() {
    if (at_ == count_) throw Wrong("it ends too early");
    int64_t word;
    std::memcpy(&word, words_ + 8 * at_++, sizeof word);
    return word;
  }

  // A number from 0 up to, but not, a limit.
  int64_t NextBelow(int64_t limit, const char* what) {
    const int64_t value = Next();
    if (value < 0 || value >= limit) {
      throw Wrong(std::string(what) + " " + std::to_string(value) + " is not below " +
                  std::to_string(limit));
    }
    return value;
  }

  Reader Take(int64_t count) {
    if (count < 0 || static_cast<uint64_t>(count) > count_ - at_) throw Wrong("it ends too early");
    Reader part(words_ + 8 * at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return part;
  }

  bool is_done() const { return at_ == count_; }
  size_t left() const { return count_ - at_; }

 private:
  const char* words_;
  size_t count_;
  size_t at_ = 0;
};

class Decoder {
 public:
  Decoder(Program& program, Reader reader)
      : program_(program),
        reader_(reader),
        constants_(PyTuple_Size(program.constants)),
        texts_(PyTuple_Size(program.texts)) {}

  void Decode() {
    if (reader_.Next() != kVersion) throw Wrong("its version is not 1");
    program_.registers = static_cast<size_t>(reader_.NextBelow(kMostRegisters + 1, "registers"));
    program_.leaves = static_cast<size_t>(reader_.NextBelow(kMostLeaves + 1, "leaves"));
    program_.argument_arrays =
        static_cast<size_t>(reader_.NextBelow(kMostArrays + 1, "argument arrays"));
    program_.arrays = static_cast<size_t>(reader_.NextBelow(kMostArrays + 1, "arrays"));
    if (program_.argument_arrays > program_.arrays) throw Wrong("it has more argument arrays");
    if (program_.argument_arrays > program_.leaves) throw Wrong("it has more arrays than leaves");
    const int64_t blocks = reader_.NextBelow(kMostBlocks + 1, "blocks");
    if (blocks == 0) throw Wrong("it has no block");
    if (blocks * static_cast<int64_t>(program_.registers) > kMostStates) {
      throw Wrong("it has too many registers for its blocks");
    }
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < blocks; ++i) sizes.push_back(reader_.Next());
    program_.blocks.resize(static_cast<size_t>(blocks));
    program_.needs_extent.assign(program_.argument_arrays, 0);
    parents_.assign(sizes.size(), -1);
    states_.resize(sizes.size());
    states_[0].assign(program_.registers, RegisterType::kUndefined);
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (i > 0 && parents_[i] < 0) throw Wrong("no guard leads to block " + std::to_string(i));
      Reader part = reader_.Take(sizes[i]);
      DecodeBlock(i, part);
      if (!part.is_done()) throw Wrong("a block has words after its end");
    }
    if (!reader_.is_done()) throw Wrong("words follow its last block");
    OrderInputs();
  }

 private:
  int32_t Text(Reader& reader) {
    const int64_t text = reader.Next();
    if (text < -1 || text >= texts_) throw Wrong("there is no text " + std::to_string(text));
    return static_cast<int32_t>(text);
  }

  int32_t Register(Reader& reader, RegisterType type) {
    const int64_t index = reader.NextBelow(static_cast<int64_t>(program_.registers), "register");
    if ((*types_)[static_cast<size_t>(index)] != type) {
      throw Wrong("register " + std::to_string(index) + " is not of the type that is read");
    }
    return static_cast<int32_t>(index);
  }
  int32_t Int(Reader& reader) { return Register(reader, RegisterType::kInt); }

  int32_t IntOrNone(Reader& reader, bool is_there) {
    if (is_there) return Int(reader);
    if (reader.Next() != -1) throw Wrong("a register is given that no flag asks for");
    return -1;
  }

  int32_t Predicate(Reader& reader) {
    Reader copy = reader;
    if (copy.Next() == -1) {
      reader = copy;
      return -1;
    }
    return Register(reader, RegisterType::kBool);
  }

  int32_t Define(Reader& reader, RegisterType type) {
    const auto index =
        static_cast<size_t>(reader.NextBelow(static_cast<int64_t>(program_.registers), "register"));
    if ((*types_)[index] != RegisterType::kUndefined) {
      throw Wrong("register " + std::to_string(index) + " is defined twice");
    }
    (*types_)[index] = type;
    return static_cast<int32_t>(index);
  }

  int32_t InputOf(Input::Kind kind, int64_t index, int64_t axis) {
    const auto key = std::make_tuple(static_cast<int>(kind), index, axis);
    const auto found = inputs_.find(key);
    if (found != inputs_.end()) return found->second;
    const auto number = static_cast<int32_t>(program_.inputs.size());
    program_.inputs.push_back({kind, static_cast<int32_t>(index), static_cast<int32_t>(axis)});
    inputs_[key] = number;
    return number;
  }

  void DecodeBlock(size_t number, Reader& reader) {
    types_ = &states_[number];
    Block& block = program_.blocks[number];
    block.first = static_cast<uint32_t>(program_.instructions.size());
    for (;;) {
      const auto head = static_cast<uint64_t>(reader.Next());
      const uint64_t code = head & 0xffffffff;
      const auto opcode = static_cast<Opcode>(code);
      const char* operands = code < 256 ? OperandsOf(opcode) : nullptr;
      if (operands == nullptr) throw Wrong("there is no opcode " + std::to_string(code));
      Reader part = reader.Take(static_cast<int64_t>(head >> 32) - 1);
      block.end = static_cast<uint32_t>(program_.instructions.size());
      if (opcode == Opcode::kGUARD) {
        DecodeGuard(number, part);
      } else if (opcode == Opcode::kEFFECTS) {
        const int64_t count = part.Next();
        if (!part.is_done()) throw Wrong("EFFECTS has another number of words");
        DecodeEffects(block, count, reader);
      } else if (code >= 120) {
        throw Wrong(std::string(NameOfOpcode(opcode)) + " stands in a plan");
      } else {
        DecodeInstruction(opcode, operands, part);
      }
      if (!part.is_done()) {
        throw Wrong(std::string(NameOfOpcode(opcode)) + " has another number of words");
      }
      if (opcode == Opcode::kGUARD || opcode == Opcode::kEFFECTS) break;
    }
    if (block.condition < 0) states_[number].clear();
  }

  void DecodeGuard(size_t number, Reader& reader) {
    Block& block = program_.blocks[number];
    block.condition = Register(reader, RegisterType::kBool);
    for (int32_t* next : {&block.if_true, &block.if_false}) {
      const int64_t target = reader.Next();
      if (target == -1) continue;
      // A tree whose blocks come after the guard that leads to them: it ends.
      if (target <= static_cast<int64_t>(number) ||
          target >= static_cast<int64_t>(program_.blocks.size())) {
        throw Wrong("a guard leads to block " + std::to_string(target));
      }
      const auto index = static_cast<size_t>(target);
      if (parents_[index] >= 0) throw Wrong("two guards lead to one block");
      parents_[index] = static_cast<int64_t>(number);
      states_[index] = states_[number];
      *next = static_cast<int32_t>(target);
    }
    block.text = Text(reader);
    states_[number].clear();
  }

  void DecodeInstruction(Opcode opcode, const char* operands, Reader& reader) {
    Instruction made = {opcode, -1, -1, -1, -1, -1, 0};
    int32_t* const places[] = {&made.x, &made.y, &made.z};
    int used = 0;
    char result = 0;
    Reader at_result = reader;
    for (const char* operand = operands; *operand != 0; ++operand) {
      switch (*operand) {
        case 'I':
        case 'F':
        case 'B':
          // Defined last: an instruction does not read its own result.
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
        case 'n':
          if (opcode == Opcode::kRANGE && used == 1) {
            *places[used++] = static_cast<int32_t>(reader.NextBelow(9, "size"));
          } else {
            made.value = reader.Next();
          }
          break;
        case 'l':
          made.value = reader.NextBelow(static_cast<int64_t>(program_.leaves), "leaf");
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

  // The immediates of a few instructions.
  static void Limit(Opcode opcode, const Instruction& made) {
    bool is_good = true;
    if (opcode == Opcode::kCONST_B) is_good = made.value == 0 || made.value == 1;
    if (opcode == Opcode::kDEVICE_ATTRIBUTE) is_good = made.value > 0 && made.value < 4096;
    if (opcode == Opcode::kRANGE) {
      is_good = (made.y == 1 || made.y == 2 || made.y == 4 || made.y == 8) &&
                (made.value == 0 || made.value == 1);
    }
    if (opcode == Opcode::kFRANGE) {
      is_good = made.value >= static_cast<int64_t>(Source::kFloat) &&
                made.value <= static_cast<int64_t>(Source::kBfloat16);
    }
    if (!is_good) throw Wrong(std::string(NameOfOpcode(opcode)) + " has an operand out of range");
  }

  void SetInput(Instruction* made) {
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

  // b, text, exception, n, registers...: b and the text are read already.
  void DecodeCheck(Instruction* made, Reader& reader) {
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

  // ---- effects

  enum class ArrayState : uint8_t { kUndefined, kGiven, kAllocated, kView };

  void DecodeEffects(Block& block, int64_t count, Reader& reader) {
    block.condition = -1;
    array_states_.assign(program_.arrays, ArrayState::kUndefined);
    base_.assign(program_.arrays, -1);
    for (size_t i = 0; i < program_.argument_arrays; ++i) {
      array_states_[i] = ArrayState::kGiven;
      base_[i] = static_cast<int32_t>(i);
    }
    if (count < 1 || static_cast<uint64_t>(count) > reader.left()) throw Wrong("it has no RETURN");
    for (int64_t i = 0; i < count; ++i) {
      const auto head = static_cast<uint64_t>(reader.Next());
      Reader part = reader.Take(static_cast<int64_t>(head >> 32) - 1);
      const uint64_t code = head & 0xffffffff;
      if (code < 120 || code > 126) throw Wrong("there is no effect " + std::to_string(code));
      Effect effect;
      effect.opcode = static_cast<Opcode>(code);
      if ((effect.opcode == Opcode::kRETURN) != (i == count - 1)) {
        throw Wrong("RETURN is not the last effect");
      }
      DecodeEffect(&effect, part);
      if (!part.is_done()) {
        throw Wrong(std::string(NameOfOpcode(effect.opcode)) + " has another number of words");
      }
      block.effects.push_back(std::move(effect));
    }
    // Arrays of the program's own are read before anything is done.
    std::stable_partition(block.effects.begin(), block.effects.end(), [](const Effect& effect) {
      return effect.opcode == Opcode::kCONSTANT_ARRAY;
    });
  }

  int32_t Array(Reader& reader) {
    const int64_t index = reader.NextBelow(static_cast<int64_t>(program_.arrays), "array");
    if (array_states_[static_cast<size_t>(index)] == ArrayState::kUndefined) {
      throw Wrong("array " + std::to_string(index) + " is used before it is defined");
    }
    return static_cast<int32_t>(index);
  }

  int32_t NewArray(Reader& reader, ArrayState state, int32_t source = -1) {
    const int64_t index = reader.NextBelow(static_cast<int64_t>(program_.arrays), "array");
    const auto at = static_cast<size_t>(index);
    if (array_states_[at] != ArrayState::kUndefined) {
      throw Wrong("array " + std::to_string(index) + " is defined twice");
    }
    array_states_[at] = state;
    base_[at] = source >= 0 ? base_[static_cast<size_t>(source)] : static_cast<int32_t>(index);
    return static_cast<int32_t>(index);
  }

  // The bounds of the memory behind an array are looked at.
  void NeedExtent(int32_t array) {
    const auto base = static_cast<size_t>(base_[static_cast<size_t>(array)]);
    if (base < program_.argument_arrays) program_.needs_extent[base] = 1;
  }

  PyObject* Constant(Reader& reader) {
    return PyTuple_GetItem(program_.constants,
                           static_cast<Py_ssize_t>(reader.NextBelow(constants_, "constant")));
  }

  void DecodeEffect(Effect* effect, Reader& reader) {
    switch (effect->opcode) {
      case Opcode::kALLOCATE:
        effect->array = NewArray(reader, ArrayState::kAllocated);
        effect->number = static_cast<uint8_t>(reader.NextBelow(operands::kAllTypes, "dtype"));
        effect->zeros = reader.NextBelow(2, "fill") == 1;
        effect->text = Text(reader);
        Registers(reader, reader.NextBelow(operands::kMaxDims + 1, "rank"), &effect->shape);
        return;
      case Opcode::kVIEW: {
        Reader copy = reader;
        copy.Next();
        effect->source = Array(copy);
        effect->array = NewArray(reader, ArrayState::kView, effect->source);
        reader.Next();
        effect->value = Int(reader);
        effect->number = static_cast<uint8_t>(reader.NextBelow(operands::kAllTypes, "dtype"));
        effect->text = Text(reader);
        const int64_t rank = reader.NextBelow(operands::kMaxDims + 1, "rank");
        Registers(reader, rank, &effect->shape);
        Registers(reader, rank, &effect->strides);
        return;
      }
      case Opcode::kMEMSET:
        effect->array = Array(reader);
        NeedExtent(effect->array);
        effect->value = Int(reader);
        effect->bytes = Int(reader);
        effect->predicate = Predicate(reader);
        effect->text = Text(reader);
        return;
      case Opcode::kLAUNCH:
        DecodeLaunch(effect, reader);
        return;
      case Opcode::kCALL:
        DecodeCall(effect, reader);
        return;
      case Opcode::kCONSTANT_ARRAY:
        effect->array = NewArray(reader, ArrayState::kGiven);
        effect->source = static_cast<int32_t>(reader.NextBelow(constants_, "constant"));
        effect->number = static_cast<uint8_t>(reader.NextBelow(operands::kAllTypes, "dtype"));
        effect->value = static_cast<int32_t>(reader.NextBelow(operands::kMaxDims + 1, "rank"));
        return;
      default: {
        Reader copy = reader;
        DecodeResult(reader, 0);
        while (!copy.is_done()) effect->result.push_back(copy.Next());
        return;
      }
    }
  }

  void Registers(Reader& reader, int64_t count, std::vector<int32_t>* registers) {
    for (int64_t i = 0; i < count; ++i) registers->push_back(Int(reader));
  }

  void DecodeLaunch(Effect* effect, Reader& reader) {
    PyObject* kernel = Constant(reader);
    if (PyObject_TypeCheck(kernel, g_kernel_type) == 0) throw Wrong("a LAUNCH has no kernel");
    effect->launch = std::make_unique<Launch>();
    Launch& launch = *effect->launch;
    launch.kernel = reinterpret_cast<KernelObject*>(kernel);
    launch.flags = reader.NextBelow(32, "flags");
    effect->predicate = Predicate(reader);
    effect->text = Text(reader);
    for (int i = 0; i < 12; ++i) {
      const bool is_there = i < 6 || (launch.flags & (i < 9 ? kHasCluster : kHasPreferredCluster));
      launch.dims[i] = IntOrNone(reader, is_there);
    }
    launch.shared_memory = Int(reader);
    launch.priority = IntOrNone(reader, (launch.flags & kHasPriority) != 0);
    const int64_t count = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "parameters");
    if (static_cast<size_t>(count) != launch.kernel->count) {
      throw Wrong("a LAUNCH has " + std::to_string(count) + " parameters, and its kernel " +
                  std::to_string(launch.kernel->count));
    }
    for (size_t i = 0; i < launch.kernel->count; ++i) {
      const ParameterSlot& slot = launch.kernel->slots[i];
      Part part = DecodePart(reader, kMostParameterBytes, 0);
      if (part.offset != slot.offset || part.size != slot.size) {
        throw Wrong("parameter " + std::to_string(i) + " of a LAUNCH is not where its kernel's is");
      }
      launch.parts.push_back(std::move(part));
    }
    culaunch::Driver* driver = &launch.kernel->state->driver();
    if (program_.driver != nullptr && program_.driver != driver) {
      throw Wrong("its kernels are of two drivers");
    }
    program_.driver = driver;
  }

  // A parameter, or a field of a structure of `limit` bytes.
  Part DecodePart(Reader& reader, int64_t limit, int depth) {
    if (depth > kMostNesting) throw Wrong("structures are nested too deep");
    Part part;
    part.source = static_cast<Source>(
        reader.NextBelow(static_cast<int64_t>(Source::kTensorMap) + 1, "source"));
    part.offset = static_cast<uint32_t>(reader.NextBelow(limit + 1, "offset"));
    part.size = static_cast<uint32_t>(reader.NextBelow(limit + 1 - part.offset, "size"));
    const uint32_t size = part.size;
    bool is_good = true;
    switch (part.source) {
      case Source::kArray:
        part.index = Array(reader);
        is_good = size == 8;
        break;
      case Source::kInt:
        part.index = Int(reader);
        is_good = size == 1 || size == 2 || size == 4 || size == 8;
        break;
      case Source::kFloat:
        part.index = Register(reader, RegisterType::kFloat);
        is_good = size == 4 || size == 8;
        break;
      case Source::kFloat16:
      case Source::kBfloat16:
        part.index = Register(reader, RegisterType::kFloat);
        is_good = size == 2;
        break;
      case Source::kBool:
        part.index = Register(reader, RegisterType::kBool);
        is_good = size == 1;
        break;
      case Source::kNull:
        break;
      case Source::kBytes:
        DecodeBytes(&part, reader, depth);
        break;
      case Source::kTensorMap:
        is_good = size == sizeof(CUtensorMap);
        part.index = Array(reader);
        for (int32_t& number : part.map) {
          number = static_cast<int32_t>(reader.NextBelow(64, "number of a tensor map"));
        }
        part.rank = static_cast<int32_t>(reader.NextBelow(6, "rank of a tensor map"));
        if (part.rank == 0) throw Wrong("a tensor map has no dimension");
        Registers(reader, 4 * int64_t{part.rank} - 1, &part.registers);
        break;
    }
    if (!is_good)
      throw Wrong("a parameter of " + std::to_string(size) + " bytes has no such value");
    return part;
  }

  void DecodeBytes(Part* part, Reader& reader, int depth) {
    PyObject* bytes = Constant(reader);
    if (!PyBytes_Check(bytes) || PyBytes_Size(bytes) != static_cast<Py_ssize_t>(part->size)) {
      throw Wrong("a structure's constant is no bytes of its size");
    }
    part->bytes.assign(PyBytes_AsString(bytes), part->size);
    const int64_t fields = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "fields");
    for (int64_t i = 0; i < fields; ++i) {
      part->fields.push_back(DecodePart(reader, part->size, depth + 1));
    }
  }

  void DecodeCall(Effect* effect, Reader& reader) {
    effect->call = std::make_unique<CallRecord>();
    CallRecord& call = *effect->call;
    call.callable = Constant(reader);
    effect->predicate = Predicate(reader);
    effect->text = Text(reader);
    const int64_t count = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "arguments");
    for (int64_t i = 0; i < count; ++i) {
      const auto given = static_cast<Given>(
          reader.NextBelow(static_cast<int64_t>(Given::kConstant) + 1, "argument"));
      int32_t index = -1;
      switch (given) {
        case Given::kArray:
          index = Array(reader);
          NeedExtent(index);
          break;
        case Given::kInt:
          index = Int(reader);
          break;
        case Given::kFloat:
          index = Register(reader, RegisterType::kFloat);
          break;
        case Given::kBool:
          index = Register(reader, RegisterType::kBool);
          break;
        case Given::kConstant:
          index = static_cast<int32_t>(reader.NextBelow(constants_, "constant"));
          break;
      }
      call.arguments.emplace_back(given, index);
    }
    const int64_t outputs = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "outputs");
    for (int64_t i = 0; i < outputs; ++i) {
      call.outputs.push_back(Array(reader));
      NeedExtent(call.outputs.back());
    }
  }

  void DecodeResult(Reader& reader, int depth) {
    if (depth > kMostNesting) throw Wrong("its result is nested too deep");
    const auto kind = static_cast<Result>(
        reader.NextBelow(static_cast<int64_t>(Result::kConstant) + 1, "kind of result"));
    switch (kind) {
      case Result::kNone:
        return;
      case Result::kInt:
        Int(reader);
        return;
      case Result::kFloat:
        Register(reader, RegisterType::kFloat);
        return;
      case Result::kBool:
        Register(reader, RegisterType::kBool);
        return;
      case Result::kArray: {
        const int32_t array = Array(reader);
        NeedExtent(array);
        const auto base = static_cast<size_t>(base_[static_cast<size_t>(array)]);
        if (array_states_[base] == ArrayState::kAllocated) program_.returns_new_arrays = true;
        return;
      }
      case Result::kArgument:
        reader.NextBelow(static_cast<int64_t>(program_.leaves), "leaf");
        return;
      case Result::kConstant:
        reader.NextBelow(constants_, "constant");
        return;
      case Result::kTuple:
      case Result::kList: {
        const int64_t count = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "items");
        for (int64_t i = 0; i < count; ++i) DecodeResult(reader, depth + 1);
        return;
      }
    }
  }

  // Inputs lie in the order in which a call comes to them: those of an array together.
  void OrderInputs() {
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
      if (one.opcode >= Opcode::kARG_I && one.opcode <= Opcode::kDEVICE) {
        one.value = places[static_cast<size_t>(one.value)];
      } else if (one.opcode == Opcode::kDEVICE_ATTRIBUTE) {
        one.x = places[static_cast<size_t>(one.x)];
      }
    }
    program_.leaf_inputs.assign(program_.leaves, -1);
    program_.array_inputs.assign(program_.argument_arrays + 1, 0);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Input& input = inputs[i];
      const auto index = static_cast<size_t>(input.index);
      if (input.kind == Input::kInt || input.kind == Input::kFloat) {
        if (program_.leaf_inputs[index] >= 0) throw Wrong("a leaf is an int and a float");
        program_.leaf_inputs[index] = static_cast<int32_t>(i);
      } else if (input.kind == Input::kDevice) {
        program_.device_input = static_cast<int32_t>(i);
      } else {
        program_.array_inputs[index + 1] = static_cast<uint32_t>(i + 1);
      }
    }
    for (size_t i = 1; i < program_.array_inputs.size(); ++i) {
      program_.array_inputs[i] = std::max(program_.array_inputs[i], program_.array_inputs[i - 1]);
    }
  }

  Program& program_;
  Reader reader_;
  int64_t constants_;
  int64_t texts_;
  std::vector<int64_t> parents_;
  // The types of the registers on the way to each block that is still to come.
  std::vector<std::vector<RegisterType>> states_;
  std::vector<RegisterType>* types_ = nullptr;
  std::vector<ArrayState> array_states_;
  std::vector<int32_t> base_;  // of a view, the array whose memory it is in
  std::map<std::tuple<int, int64_t, int64_t>, int32_t> inputs_;
};

}  // namespace

std::unique_ptr<Program> Program::Decode(const char* words, size_t bytes, PyObject* constants,
                                         PyObject* texts) {
  auto program = std::make_unique<Program>();
  program->constants = constants;
  program->texts = texts;
  try {
    for (Py_ssize_t i = 0; i < PyTuple_Size(texts); ++i) {
      if (!PyUnicode_Check(PyTuple_GetItem(texts, i))) throw Wrong("a text is no str");
    }
    if (bytes % sizeof(Word) != 0) throw Wrong("it is not of whole words");
    Decoder(*program, Reader(words, bytes / sizeof(Word))).Decode();
  } catch (const Wrong& wrong) {
    PyErr_Format(PyExc_ValueError, "program: %s", wrong.what());
    return nullptr;
  }
  return program;
}

}  // namespace function
