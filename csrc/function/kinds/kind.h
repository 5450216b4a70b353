// The kind of a call: the properties of its arguments that select the program.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "arguments/types/type_table.h"
#include "arguments/views/element_types.h"
#include "function/program/program_object.h"
#include "python/python.h"

namespace function {

// The kind of one argument, or of one array in a list or tuple. The steps of its arrays follow the
// step of a sequence.
struct Step {
  enum Code : uint8_t { kArray, kInt, kFloat, kNone, kStatic, kTuple, kList };
  Code code = kNone;
  uint8_t number = 0;         // of the element type
  bool is_read_only = false;  // an array
  int32_t rank = 0;           // of an array
  int32_t items = 0;          // of a sequence: the number of its arrays
  uint32_t type = 0;          // an array's DLPack element type, packed
  Ref value;                  // of kStatic
  // The entry of the last array's type: most calls pass the same one again.
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

// Whether two values have the same type and are ==. For tuples, their items must match, too. -1
// with a Python error set.
int IsSameStatic(PyObject* known, PyObject* object);

// The kind of a call, and its program. Kinds are never removed before their function is freed.
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

  // The Python form: a tuple with an entry for each parameter.
  Ref Describe() const;

  // From the result of Describe. Null with a Python error set.
  static std::unique_ptr<Kind> FromDescription(PyObject* description);

  // Whether a program is for calls of this kind; false with a ValueError set.
  bool Takes(const Program& program) const;

  int Traverse(visitproc visit, void* arg) const;
};

}  // namespace function
