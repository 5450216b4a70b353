// The kind of a call: what of its arguments chooses the program.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "arguments/element_types.h"
#include "arguments/type_table.h"
#include "function/program_object.h"
#include "python/python.h"

namespace function {

// The kind of one argument, or of one array in a list or tuple. Those follow their sequence.
struct Step {
  enum Code : uint8_t { kArray, kInt, kFloat, kNone, kStatic, kTuple, kList };
  Code code = kNone;
  uint8_t number = 0;         // of the element type
  bool is_read_only = false;  // an array
  int32_t rank = 0;           // of an array
  int32_t items = 0;          // of a sequence: its arrays
  uint32_t type = 0;          // an array's DLPack element type, packed
  Ref value;                  // of kStatic
  // The entry of the type of array that came last: most calls bring the same one again.
  std::atomic<const TypeEntry*> entry{nullptr};

  Step() = default;
  Step(Step&& other) noexcept
      : code(other.code),
        number(other.number),
        is_read_only(other.is_read_only),
        rank(other.rank),
        items(other.items),
        type(other.type),
        value(std::move(other.value)) {}
};

using operands::PackType;

// Whether a value is equal to another: of the same type, and ==; of tuples, so are their items. -1
// with a Python error set.
int IsSameStatic(PyObject* known, PyObject* object);

// A kind that came, and its program. Kinds are never removed before their function goes.
struct Kind {
  std::vector<Step> steps;
  size_t parameters = 0;
  size_t arrays = 0;
  ProgramObject* program = nullptr;  // owned, under the function's lock; null: not traced
  Kind* next = nullptr;

  // Append a step, and count it. `is_item`: an array of a sequence.
  Step& Add(Step::Code code, bool is_item = false);

  // Whether two kinds are the same; -1 with a Python error set.
  int Equals(const Kind& other) const;

  // As Python has it: a tuple with an entry for each parameter.
  Ref Describe() const;

  // From the result of Describe. Null with a Python error set.
  static std::unique_ptr<Kind> FromDescription(PyObject* description);

  // Whether a program is for calls of this kind; false with a ValueError set.
  bool Takes(const Program& program) const;

  int Traverse(visitproc visit, void* arg) const;
};

}  // namespace function
