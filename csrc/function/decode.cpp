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
constexpr int64_t kMostStates = 1 << 24;  // blocks times registers
constexpr int64_t kMostParameterBytes = 1 << 16;
constexpr int kMostNesting = 16;

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const char* NameOfEffect(EffectCode code) {
  static constexpr const char* names[] = {"",       "ALLOCATE", "VIEW",  "MEMSET",
                                          "LAUNCH", "CALL",     "RETURN"};
  return names[static_cast<int>(code)];
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

#define CULAUNCH_COUNT(name, number) +1
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
    program_.argument_arrays =
        static_cast<size_t>(reader_.NextBelow(kMostArrays + 1, "argument arrays"));
    program_.arrays = static_cast<size_t>(reader_.NextBelow(kMostArrays + 1, "arrays"));
    if (program_.argument_arrays > program_.arrays) throw Wrong("it has more argument arrays");
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
    program_.arrays += most_objects_;
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
        case 'g': {
          Reader copy = reader;
          if (copy.Next() == -1) {
            reader = copy;
          } else {
            *places[used++] = Register(reader, RegisterType::kFloat);
          }
          break;
        }
        case 'n':
          // Of two, the first one is small.
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

  // The immediates of a few instructions.
  static void Limit(Opcode opcode, const Instruction& made) {
    bool is_good = true;
    if (opcode == Opcode::kCONST_B) is_good = made.value == 0 || made.value == 1;
    if (opcode == Opcode::kDEVICE_ATTRIBUTE) is_good = made.value > 0 && made.value < 4096;
    if (opcode == Opcode::kRANGE) {
      is_good = (made.y == 1 || made.y == 2 || made.y == 4 || made.y == 8) && made.value >= 0 &&
                made.value <= 2;
    }
    if (opcode == Opcode::kFLOAT_RANGE) is_good = IsFloatType(made.y, made.value);
    if (!is_good) throw Wrong(std::string(NameOfOpcode(opcode)) + " has an operand out of range");
  }

  static bool IsFloatType(int64_t code, int64_t bits) {
    constexpr int64_t kFloat = 2;
    constexpr int64_t kBfloat = 4;
    return (code == kFloat && (bits == 16 || bits == 32 || bits == 64)) ||
           (code == kBfloat && bits == 16);
  }

  int64_t NextParameter(Reader& reader) {
    const int64_t parameter =
        reader.NextBelow(static_cast<int64_t>(Program::kMostParameters), "parameter");
    program_.parameters = std::max(program_.parameters, static_cast<int32_t>(parameter + 1));
    return parameter;
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
    objects_.clear();
    for (int64_t i = 0; i < count; ++i) {
      const auto head = static_cast<uint64_t>(reader.Next());
      Reader part = reader.Take(static_cast<int64_t>(head >> 32) - 1);
      const uint64_t code = head & 0xffffffff;
      if (code < 1 || code > 6) throw Wrong("there is no effect " + std::to_string(code));
      Effect effect;
      effect.code = static_cast<EffectCode>(code);
      if ((effect.code == EffectCode::kReturn) != (i == count - 1)) {
        throw Wrong("RETURN is not the last effect");
      }
      DecodeEffect(&effect, part);
      if (!part.is_done()) {
        throw Wrong(std::string(NameOfEffect(effect.code)) + " has another number of words");
      }
      block.effects.push_back(std::move(effect));
    }
    // Arrays of the program's own are read before anything is done.
    std::vector<Effect> all;
    for (const auto& [constant, array] : objects_) {
      Effect effect;
      effect.code = EffectCode::kConstantArray;
      effect.source = static_cast<int32_t>(constant);
      effect.array = array;
      all.push_back(std::move(effect));
    }
    all.insert(all.end(), std::make_move_iterator(block.effects.begin()),
               std::make_move_iterator(block.effects.end()));
    block.effects = std::move(all);
    most_objects_ = std::max(most_objects_, objects_.size());
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
    switch (effect->code) {
      case EffectCode::kAllocate:
        effect->array = NewArray(reader, ArrayState::kAllocated);
        effect->number = static_cast<uint8_t>(reader.NextBelow(operands::kAllTypes, "dtype"));
        effect->zeros = reader.NextBelow(2, "fill") == 1;
        Registers(reader, reader.NextBelow(operands::kMaxDims + 1, "rank"), &effect->shape);
        return;
      case EffectCode::kView: {
        Reader copy = reader;
        copy.Next();
        effect->source = Array(copy);
        effect->array = NewArray(reader, ArrayState::kView, effect->source);
        reader.Next();
        effect->value = Int(reader);
        effect->number = static_cast<uint8_t>(reader.NextBelow(operands::kAllTypes, "dtype"));
        const int64_t rank = reader.NextBelow(operands::kMaxDims + 1, "rank");
        Registers(reader, rank, &effect->shape);
        Registers(reader, rank, &effect->strides);
        return;
      }
      case EffectCode::kMemset:
        effect->array = Array(reader);
        NeedExtent(effect->array);
        effect->value = Int(reader);
        effect->bytes = Int(reader);
        effect->predicate = Predicate(reader);
        return;
      case EffectCode::kLaunch:
        DecodeLaunch(effect, reader);
        return;
      case EffectCode::kCall:
        DecodeCall(effect, reader);
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
    launch.flags = reader.NextBelow(kAllFlags + 1, "flags");
    effect->predicate = Predicate(reader);
    for (int i = 0; i < 12; ++i) {
      const bool is_there = i < 6 || (launch.flags & (i < 9 ? kHasCluster : kHasPreferredCluster));
      launch.dims[i] = IntOrNone(reader, is_there);
    }
    launch.shared_memory = IntOrNone(reader, (launch.flags & kHasSharedMemory) != 0);
    launch.priority = IntOrNone(reader, (launch.flags & kHasPriority) != 0);
    effect->text = Text(reader);
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
    part.source =
        static_cast<Source>(reader.NextBelow(static_cast<int64_t>(Source::kObject) + 1, "source"));
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
      case Source::kFloat: {
        part.index = Register(reader, RegisterType::kFloat);
        const int64_t code = reader.NextBelow(8, "code");
        const int64_t bits = reader.NextBelow(65, "bits");
        part.code = static_cast<uint8_t>(code);
        is_good = IsFloatType(code, bits) && size * 8 == bits;
        break;
      }
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
        DecodeMap(&part, reader);
        break;
      case Source::kObject:
        part.index = ObjectArray(reader);
        part.source = Source::kArray;
        is_good = size == 8;
        break;
    }
    if (!is_good)
      throw Wrong("a parameter of " + std::to_string(size) + " bytes has no such value");
    return part;
  }

  void DecodeMap(Part* part, Reader& reader) {
    PyObject* numbers = Constant(reader);
    if (!PyTuple_Check(numbers) || PyTuple_Size(numbers) != 5) {
      throw Wrong("a tensor map's constant is no tuple of five numbers");
    }
    for (Py_ssize_t i = 0; i < 5; ++i) {
      const long number = PyLong_AsLong(PyTuple_GetItem(numbers, i));
      if (number < 0 || number > 63) {
        PyErr_Clear();
        throw Wrong("a tensor map's constant is no tuple of five numbers");
      }
      part->map[i] = static_cast<int32_t>(number);
    }
    part->index = Array(reader);
    part->rank = static_cast<int32_t>(reader.NextBelow(6, "rank of a tensor map"));
    if (part->rank == 0) throw Wrong("a tensor map has no dimension");
    Registers(reader, 4 * int64_t{part->rank} - 1, &part->registers);
  }

  // The number of an array that is a constant: behind those of the program.
  int32_t ObjectArray(Reader& reader) {
    const int64_t constant = reader.NextBelow(constants_, "constant");
    for (const auto& [known, array] : objects_) {
      if (known == constant) return array;
    }
    const auto array = static_cast<int32_t>(program_.arrays + objects_.size());
    objects_.emplace_back(constant, array);
    return array;
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
    const int64_t count = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "arguments");
    for (int64_t i = 0; i < count; ++i) {
      const auto kind = static_cast<Value>(
          reader.NextBelow(static_cast<int64_t>(Value::kConstant) + 1, "argument"));
      const bool is_none = kind == Value::kNone;
      call.arguments.emplace_back(
          kind, is_none ? static_cast<int32_t>(reader.Next()) : DecodeValue(kind, reader));
    }
    const int64_t outputs = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "outputs");
    for (int64_t i = 0; i < outputs; ++i) {
      call.outputs.push_back(Array(reader));
      NeedExtent(call.outputs.back());
    }
  }

  // One of the kinds from kInt to kConstant.
  int32_t DecodeValue(Value kind, Reader& reader) {
    switch (kind) {
      case Value::kInt:
        return Int(reader);
      case Value::kFloat:
        return Register(reader, RegisterType::kFloat);
      case Value::kBool:
        return Register(reader, RegisterType::kBool);
      case Value::kArray: {
        const int32_t array = Array(reader);
        NeedExtent(array);
        return array;
      }
      case Value::kArgument:
        return static_cast<int32_t>(NextParameter(reader));
      default:
        return static_cast<int32_t>(reader.NextBelow(constants_, "constant"));
    }
  }

  void DecodeResult(Reader& reader, int depth) {
    if (depth > kMostNesting) throw Wrong("its result is nested too deep");
    const auto kind = static_cast<Value>(
        reader.NextBelow(static_cast<int64_t>(Value::kElement) + 1, "kind of result"));
    if (kind == Value::kNone) return;
    if (kind == Value::kElement) {
      const auto parameter = static_cast<int32_t>(NextParameter(reader));
      const auto element = static_cast<int32_t>(reader.NextBelow(kMostArrays, "element"));
      program_.elements.emplace_back(parameter, element);
      return;
    }
    if (kind < Value::kTuple) {
      const int32_t index = DecodeValue(kind, reader);
      if (kind != Value::kArray) return;
      const auto base = static_cast<size_t>(base_[static_cast<size_t>(index)]);
      if (array_states_[base] == ArrayState::kAllocated) program_.returns_new_arrays = true;
      return;
    }
    if (kind == Value::kCalled) reader.NextBelow(constants_, "constant");
    const int64_t count = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "items");
    for (int64_t i = 0; i < count; ++i) {
      if (kind == Value::kDict && Text(reader) < 0) throw Wrong("a key has no text");
      DecodeResult(reader, depth + 1);
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
    std::fill(std::begin(program_.number_inputs), std::end(program_.number_inputs), -1);
    program_.array_inputs.assign(program_.argument_arrays + 1, 0);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Input& input = inputs[i];
      const auto index = static_cast<size_t>(input.index);
      if (input.kind == Input::kInt || input.kind == Input::kFloat) {
        if (program_.number_inputs[index] >= 0) throw Wrong("a parameter is an int and a float");
        program_.number_inputs[index] = static_cast<int32_t>(i);
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
  // The constants of a leaf that are arrays, and the numbers that those have.
  std::vector<std::pair<int64_t, int32_t>> objects_;
  size_t most_objects_ = 0;
};

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
