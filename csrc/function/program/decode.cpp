// The blocks of a program, and the paths through them.
#include "function/program/decoder.h"

namespace function {

namespace {

constexpr int64_t kOldest = 1;
constexpr int64_t kMostRegisters = 1 << 16;
constexpr int64_t kMostBlocks = 1 << 12;
constexpr int64_t kMostStates = 1 << 24;  // blocks times registers

}  // namespace

void Decoder::Decode() {
  const int64_t version = reader_.Next();
  if (version < kOldest || version > kVersion) {
    throw Wrong("its version is " + std::to_string(version) + ", and this culaunch reads " +
                std::to_string(kOldest) + " to " + std::to_string(kVersion));
  }
  // Before version 2, only launches recorded their place in the body.
  all_effects_have_texts_ = version >= 2;
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
  program_.of_arrays.resize(program_.argument_arrays);
  parents_.assign(sizes.size(), -1);
  states_.resize(sizes.size());
  states_[0].assign(program_.registers, RegisterType::kUndefined);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0 && parents_[i] < 0) throw Wrong("no guard leads to block " + std::to_string(i));
    WordReader part = reader_.Take(sizes[i]);
    DecodeBlock(i, part);
    if (!part.is_done()) throw Wrong("a block has words after its end");
  }
  if (!reader_.is_done()) throw Wrong("words follow its last block");
  program_.arrays += most_objects_;
  OrderInputs();
}

int32_t Decoder::Text(WordReader& reader) {
  const int64_t text = reader.Next();
  if (text < -1 || text >= texts_) throw Wrong("there is no text " + std::to_string(text));
  return static_cast<int32_t>(text);
}

int32_t Decoder::Register(WordReader& reader, RegisterType type) {
  const int64_t index = reader.NextBelow(static_cast<int64_t>(program_.registers), "register");
  if ((*types_)[static_cast<size_t>(index)] != type) {
    throw Wrong("register " + std::to_string(index) + " does not have the type that is read");
  }
  return static_cast<int32_t>(index);
}

int32_t Decoder::IntOrNone(WordReader& reader, bool is_there) {
  if (is_there) return Int(reader);
  if (reader.Next() != -1) throw Wrong("a register is given that no flag uses");
  return -1;
}

int32_t Decoder::Predicate(WordReader& reader) {
  WordReader copy = reader;
  if (copy.Next() == -1) {
    reader = copy;
    return -1;
  }
  return Register(reader, RegisterType::kBool);
}

int32_t Decoder::Define(WordReader& reader, RegisterType type) {
  const auto index =
      static_cast<size_t>(reader.NextBelow(static_cast<int64_t>(program_.registers), "register"));
  if ((*types_)[index] != RegisterType::kUndefined) {
    throw Wrong("register " + std::to_string(index) + " is defined twice");
  }
  (*types_)[index] = type;
  return static_cast<int32_t>(index);
}

void Decoder::DecodeBlock(size_t number, WordReader& reader) {
  types_ = &states_[number];
  Block& block = program_.blocks[number];
  block.first = static_cast<uint32_t>(program_.instructions.size());
  for (;;) {
    const auto head = static_cast<uint64_t>(reader.Next());
    const uint64_t code = head & 0xffffffff;
    const auto opcode = static_cast<Opcode>(code);
    const char* operands = code < 256 ? OperandsOf(opcode) : nullptr;
    if (operands == nullptr) throw Wrong("there is no opcode " + std::to_string(code));
    WordReader part = reader.Take(static_cast<int64_t>(head >> 32) - 1);
    block.end = static_cast<uint32_t>(program_.instructions.size());
    if (opcode == Opcode::kGUARD) {
      DecodeGuard(number, part);
    } else if (opcode == Opcode::kEFFECTS) {
      const int64_t count = part.Next();
      if (!part.is_done()) throw Wrong("EFFECTS has the wrong number of words");
      DecodeEffects(block, count, reader);
    } else {
      DecodeInstruction(opcode, operands, part);
    }
    if (!part.is_done()) {
      throw Wrong(std::string(NameOfOpcode(opcode)) + " has the wrong number of words");
    }
    if (opcode == Opcode::kGUARD || opcode == Opcode::kEFFECTS) break;
  }
  if (block.condition < 0) states_[number].clear();
}

void Decoder::DecodeGuard(size_t number, WordReader& reader) {
  Block& block = program_.blocks[number];
  block.condition = Register(reader, RegisterType::kBool);
  for (int32_t* next : {&block.if_true, &block.if_false}) {
    const int64_t target = reader.Next();
    if (target == -1) continue;
    // Each block comes after the guard that leads to it, so every path ends.
    if (target <= static_cast<int64_t>(number) ||
        target >= static_cast<int64_t>(program_.blocks.size())) {
      throw Wrong("a guard leads to block " + std::to_string(target));
    }
    const auto index = static_cast<size_t>(target);
    if (parents_[index] >= 0) throw Wrong("two guards lead to the same block");
    parents_[index] = static_cast<int64_t>(number);
    states_[index] = states_[number];
    *next = static_cast<int32_t>(target);
  }
  states_[number].clear();
}

std::unique_ptr<Program> Program::Decode(const char* words, size_t bytes, PyObject* constants,
                                         PyObject* texts) {
  auto program = std::make_unique<Program>();
  program->constants = constants;
  program->texts = texts;
  try {
    for (Py_ssize_t i = 0; i < PyTuple_Size(texts); ++i) {
      if (!PyUnicode_Check(PyTuple_GetItem(texts, i))) throw Wrong("a text is not a str");
    }
    if (bytes % sizeof(Word) != 0) throw Wrong("its size is not a multiple of the word size");
    Decoder(*program, WordReader(words, bytes / sizeof(Word))).Decode();
  } catch (const Wrong& wrong) {
    PyErr_Format(PyExc_ValueError, "program: %s", wrong.what());
    return nullptr;
  }
  return program;
}

}  // namespace function
