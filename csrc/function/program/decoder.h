// From words to a program. Programs may come from files, so the words can be arbitrary. A decoded
// program reads and writes only its own memory. Each part of the decoder has its own file.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "function/program/program.h"
#include "function/program/word_reader.h"

namespace function {

inline constexpr int64_t kMostArrays = 1 << 12;
inline constexpr int kMostNesting = 16;

const char* NameOfOpcode(Opcode opcode);

class Decoder {
 public:
  Decoder(Program& program, WordReader reader)
      : program_(program),
        reader_(reader),
        constants_(PyTuple_Size(program.constants)),
        texts_(PyTuple_Size(program.texts)) {}

  // Fill in the program; throws Wrong.
  void Decode();

 private:
  enum class ArrayState : uint8_t { kUndefined, kGiven, kAllocated, kView };

  // Operands.
  int32_t Text(WordReader& reader);
  int32_t Register(WordReader& reader, RegisterType type);
  int32_t Int(WordReader& reader) { return Register(reader, RegisterType::kInt); }
  int32_t IntOrNone(WordReader& reader, bool is_there);
  int32_t Predicate(WordReader& reader);
  int32_t Define(WordReader& reader, RegisterType type);

  // The plan.
  int32_t InputOf(Input::Kind kind, int64_t index, int64_t axis);
  void DecodeBlock(size_t number, WordReader& reader);
  void DecodeGuard(size_t number, WordReader& reader);
  void DecodeInstruction(Opcode opcode, const char* operands, WordReader& reader);
  // The immediates of a few instructions.
  static void Limit(Opcode opcode, const Instruction& made);
  static bool IsFloatType(int64_t code, int64_t bits);
  int64_t NextParameter(WordReader& reader);
  void SetInput(Instruction* made);
  // b, text, exception, n, registers...: b and the text have been read.
  void DecodeCheck(Instruction* made, WordReader& reader);

  // Effects.
  void DecodeEffects(Block& block, int64_t count, WordReader& reader);
  int32_t Array(WordReader& reader);
  int32_t NewArray(WordReader& reader, ArrayState state, int32_t source = -1);
  // An array that Python code receives.
  int32_t ShownArray(WordReader& reader);
  // Require the bounds of the memory behind an array.
  void NeedExtent(int32_t array);
  PyObject* Constant(WordReader& reader);
  void DecodeEffect(Effect* effect, WordReader& reader);
  void Registers(WordReader& reader, int64_t count, std::vector<int32_t>* registers);
  void DecodeLaunch(Effect* effect, WordReader& reader);
  // A parameter, or a field of a structure of `limit` bytes.
  Part DecodePart(WordReader& reader, int64_t limit, int depth);
  void DecodeMap(Part* part, WordReader& reader);
  // The number of a constant array. These follow the numbers of the program's own arrays.
  int32_t ObjectArray(WordReader& reader);
  void DecodeBytes(Part* part, WordReader& reader, int depth);
  void DecodeCall(Effect* effect, WordReader& reader);
  // One of the kinds from kInt to kConstant.
  int32_t DecodeValue(Value kind, WordReader& reader);
  void DecodeResult(WordReader& reader, int depth);

  // Sort the inputs in the order in which a call reads them. An array's inputs are adjacent.
  void OrderInputs();

  Program& program_;
  WordReader reader_;
  int64_t constants_;
  int64_t texts_;
  bool all_effects_have_texts_ = true;
  std::vector<int64_t> parents_;
  // The types of the registers at each block that is not yet decoded.
  std::vector<std::vector<RegisterType>> states_;
  std::vector<RegisterType>* types_ = nullptr;
  std::vector<ArrayState> array_states_;
  std::vector<int32_t> base_;  // of a view, the array whose memory it is in
  std::vector<uint8_t> is_shown_;
  std::map<std::tuple<int, int64_t, int64_t>, int32_t> inputs_;
  // The constants of a leaf that are arrays, with their array numbers.
  std::vector<std::pair<int64_t, int32_t>> objects_;
  size_t most_objects_ = 0;
};

}  // namespace function
