// A program: the plan that a call runs first, without effects, and the effects of each leaf.
#pragma once

#include <culaunch/graph_slots.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "function/program/opcodes.h"
#include "launch/kernel_object.h"
#include "python/python.h"

namespace function {

// A register: an int, the bits of a float, or a bool (0 or 1).
using Word = int64_t;

inline double AsFloat(Word word) {
  double value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

inline Word FromFloat(double value) {
  Word word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

// One instruction of the plan. `value` is its immediate; of CHECK, the number of the check.
struct Instruction {
  Opcode opcode;
  int32_t result;
  int32_t x;
  int32_t y;
  int32_t z;
  int32_t text;
  int64_t value;
};

enum class RegisterType : uint8_t { kUndefined, kInt, kFloat, kBool };

struct Check {
  int exception;
  std::vector<int32_t> registers;
  std::vector<RegisterType> types;
};

// The inputs of a plan besides the program: the same inputs give the same registers.
struct Input {
  enum Kind : uint8_t { kInt, kFloat, kDim, kStride, kContiguous, kAddress, kPlace, kDevice };
  Kind kind;
  int32_t index;  // of the parameter or the array
  int32_t axis;
};

// Part of the bytes that a kernel gets: a parameter, or a field of a structure.
struct Part {
  Source source;
  int32_t index = -1;  // of the array or the register
  uint32_t offset = 0;
  uint32_t size = 0;
  std::string bytes;         // of kBytes
  std::vector<Part> fields;  // of kBytes, offsets in the structure
  // Of kTensorMap: element type, interleave, swizzle, promotion, fill.
  int32_t map[5] = {};
  int32_t rank = 0;
  std::vector<int32_t> registers;  // sizes, strides in bytes (one fewer), box, steps
  uint8_t code = 0;                // of kFloat: DLPack's
};

struct Launch {
  KernelObject* kernel;  // borrowed from the constants
  int64_t flags;
  // Registers; -1: none.
  int32_t dims[6];  // grid, block
  int32_t shared_memory;
#define CULAUNCH_DIMS(name, flag, attribute, value, text) int32_t name[3];
#define CULAUNCH_INT(name, flag, attribute, value, text) int32_t name;
  CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_NO_LAUNCH_ATTRIBUTE, CULAUNCH_INT)
#undef CULAUNCH_DIMS
#undef CULAUNCH_INT
  std::vector<Part> parts;  // one for each parameter
};

struct CallRecord {
  PyObject* callable;  // borrowed from the constants
  std::vector<std::pair<Value, int32_t>> arguments;
  std::vector<int32_t> outputs;
};

struct Effect {
  EffectCode code;
  bool is_scratch = false;  // an array that is allocated and that Python never sees
  int32_t array = -1;
  int32_t source = -1;  // of a view: the array; of an array that is a constant: that
  int32_t predicate = -1;
  int32_t text = -1;
  uint8_t number = 0;  // the element type
  bool zeros = false;
  int32_t value = -1;  // of a view: its offset in bytes; of a fill: the byte
  int32_t bytes = -1;
  std::vector<int32_t> shape;
  std::vector<int32_t> strides;
  std::unique_ptr<Launch> launch;
  std::unique_ptr<CallRecord> call;
  std::vector<Word> result;  // as it was encoded
};

struct Block {
  uint32_t first = 0;
  uint32_t end = 0;        // of its instructions
  int32_t condition = -1;  // a guard's register; -1: a leaf
  int32_t if_true = -1;
  int32_t if_false = -1;
  std::vector<Effect> effects;
};

class Replay;
struct NumberSlice;

// The parts of an array argument that a call needs.
struct ArgumentArray {
  uint32_t first_input = 0;
  uint32_t end_input = 0;
  bool needs_extent = false;  // its memory is written, or Python sees it
};

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // Decode and check; false with a ValueError set. The caller keeps the objects alive.
  static std::unique_ptr<Program> Decode(const char* words, size_t bytes, PyObject* constants,
                                         PyObject* texts);

  // Members that every call reads come first, together.
  size_t argument_arrays = 0;
  size_t arrays = 0;
  std::vector<Input> inputs;                     // an array's are adjacent, the device's come last
  std::vector<ArgumentArray> of_arrays;          // of each argument array
  culaunch::Driver* driver = nullptr;            // of the kernels; null: none
  Replay* replay = nullptr;                      // of the last call
  std::shared_ptr<culaunch::GraphSlots> graphs;  // of leaves that launch several kernels
  std::map<int32_t, std::shared_ptr<const NumberSlice>> slices;  // of leaves, made at the first use
  int32_t device_input = -1;
  bool computes = false;  // it launches, or returns arrays other than its unchanged arguments
  static constexpr size_t kMostParameters = 255;
  int32_t number_inputs[kMostParameters] = {};        // the input of each parameter; -1: none
  std::vector<std::pair<int32_t, int32_t>> elements;  // returned (parameter, element) pairs
  int32_t parameters = 0;                             // one more than the greatest number in use
  size_t registers = 0;
  std::vector<Instruction> instructions;
  std::vector<Check> checks;
  std::vector<Block> blocks;
  PyObject* constants = nullptr;  // borrowed
  PyObject* texts = nullptr;      // borrowed

  // The texts, or null for -1.
  PyObject* Text(int32_t index) const {
    return index < 0 ? nullptr : PyTuple_GetItem(texts, index);
  }

  std::mutex mutex;  // of the replay, in builds without the GIL
};

// The letters of an opcode's operands; null if the opcode does not exist.
const char* OperandsOf(Opcode opcode);

}  // namespace function
