// One call of a function: reads its arguments, then finds and runs its program.
#pragma once

#include <culaunch/driver.h>

#include <memory>
#include <string>
#include <vector>

#include "arguments/operands.h"
#include "arguments/torch/allocated.h"
#include "arguments/torch/modes.h"
#include "function/kinds/state.h"
#include "python/small_buffer.h"

namespace function {

// An array while a program runs. Members stay uninitialized until needed: a call pays only for
// those.
struct ArrayValue {
  char* data;
  PyObject* object;      // null: none has been made yet
  const Effect* effect;  // the effect that made it; null: an argument
  Allocated allocated;   // owned, until there is an object
  const char* begin;     // the range of its memory, if it is needed
  size_t bytes;
  int32_t base;    // the array that owns its memory: itself, unless it is a view
  uint8_t number;  // the element type, of arrays that the program makes
  bool is_owned;   // the call owns the object
};

// The driver, device and stream of a call, which its first array determines.
struct CallPlace {
  culaunch::Driver* driver = nullptr;
  DLDevice device = {0, 0};
  PyObject* first = nullptr;  // the first array, borrowed; null if there is none
  const TypeEntry* entry = nullptr;
  CUstream stream = nullptr;
};

class FunctionCall {
 public:
  // args: one for each parameter, in their order.
  FunctionCall(State& state, PyObject* const* args) : state_(state), args_(args) {}
  FunctionCall(const FunctionCall&) = delete;
  FunctionCall& operator=(const FunctionCall&) = delete;

  enum class Found : uint8_t { kFound, kUnknown, kFailed };

  // Find the kind and the program, and read the arguments that the program needs. kUnknown: the
  // kind was traced, and the call begins again.
  Found Find();

  // Have Python trace the body for these arguments; false with a Python error set.
  bool Trace();

  // The result of a call with a tensor that has no memory. The framework's own entry point for the
  // function provides it, if there is one. Otherwise the current error stays.
  PyObject* Refused() const;

  // The same while a mode of torch intercepts each operation of this thread. NotImplemented if
  // there is no such way.
  bool IsSeen() const {
    return place_.entry != nullptr && place_.entry->is_torch && IsTorchWatching();
  }
  PyObject* Seen() const;

  // Drop all programs if what their bodies read has changed; false with a Python error set.
  bool CheckWatch();
  bool CheckGradients() const;

  // The kind of the arguments. Null with a Python error set.
  Ref DescribeKind();

  bool IsOfJax() const;

 private:
  friend class Execution;

  enum class Reading : uint8_t { kSame, kOther, kFailed };

  // Read the arguments as those of a kind.
  Reading ReadAs(Kind& kind);
  Reading ReadItemsAs(const Step& sequence, const Program& program, size_t array, PyObject* object);
  Reading ReadTensorAs(const Step& step, const Program& program, size_t array, PyObject* object);
  // The same for arguments of any kind, with errors that name the argument.
  bool ReadGenerally(Kind* kind);
  bool ReadArgument(size_t index, Kind* kind);
  bool ReadSequence(size_t index, PyObject* object, Kind* kind);
  void AddArray(std::unique_ptr<operands::Operand> operand, bool is_item, Kind* kind);
  bool ReadScalar(size_t index, const operands::Operand& operand, Kind* kind);
  bool IsHashable(size_t index, PyObject* object) const;
  bool GatherOperands(Kind& kind);
  bool FinishPlace();
  Ref Arguments() const;
  bool TakeProgram(Kind& kind);
  bool IsWatched(const Program& program, size_t array) const {
    return program.of_arrays[array].needs_extent || place_.driver->note_array != nullptr ||
           place_.driver->graphs.observer() != nullptr;
  }
  std::string What(size_t parameter) const;
  // The parameter whose argument is this array, or contains it.
  size_t ParameterOf(PyObject* array) const;

  State& state_;
  PyObject* const* args_;
  Ref held_;  // the program
  const Program* program_ = nullptr;
  CallPlace place_;
  SmallBuffer<ArrayValue, 16> arrays_;
  SmallBuffer<Word, 64> inputs_;
  std::vector<Ref> owners_;
  // For the general path: the Python numbers of NumPy scalars, and the arrays.
  std::vector<PyObject*> numbers_;
  std::vector<std::unique_ptr<operands::Operand>> operands_;
  operands::Place general_;
};

}  // namespace function
