// A parameter of a Triton kernel's Python function, and the known facts about it.
#pragma once

#include <atomic>
#include <string>

#include "arguments/types/type_table.h"
#include "python/python.h"
#include "triton/values/types.h"

namespace triton {

// The flags that describe a parameter.
enum ParameterFlag : int {
  kIsConstexpr = 1,
  kIsConst = 2,
  kSpecialize = 4,
  kAlign = 8,
  kOptional = 16,
  kHasDefault = 32,
  kSetToZero = 64,
};

// Members that each call reads come first, in one cache line.
struct alignas(64) Parameter {
  // The entry of the last type: most calls pass the same one again.
  std::atomic<const TypeEntry*> last{nullptr};
  ForcedType forced;
  bool is_constexpr = false;
  bool is_const = false;     // of a pointer: the elements are read-only
  bool specialize = true;    // specialize by value: 1 is folded, and divisibility matters
  bool align = true;         // specialize by divisibility
  bool is_optional = false;  // may be omitted without a default
  bool is_set_to_zero = false;
  Ref name;           // interned
  Ref default_value;  // null: none
  Ref last_constant;  // the last immutable object, recognized by identity
  uint64_t last_number = 0;
  std::string annotation;
};

// Read (name, default, flags, annotation). False with a Python error set.
bool ReadParameter(PyObject* item, Parameter* parameter);

// The parameter with a name; -1 if there is none.
int FindParameter(const Parameter* parameters, size_t count, PyObject* name);

}  // namespace triton
