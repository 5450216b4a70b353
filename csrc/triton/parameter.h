// A parameter of a Triton kernel's Python function, and the known facts about it.
#pragma once

#include <atomic>
#include <string>

#include "arguments/type_table.h"
#include "python/python.h"
#include "triton/types.h"

namespace triton {

// The flags that a parameter is described by.
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
  // The entry of the type that came last: most calls bring the same again.
  std::atomic<const TypeEntry*> last{nullptr};
  ForcedType forced;
  bool is_constexpr = false;
  bool is_const = false;     // of a pointer: the elements are read only
  bool specialize = true;    // by value: 1 is folded, divisibility matters
  bool align = true;         // by divisibility
  bool is_optional = false;  // may be left out although it has no default
  bool is_set_to_zero = false;
  Ref name;           // interned
  Ref default_value;  // null: none
  Ref last_constant;  // the immutable object that came last, known by identity
  uint64_t last_number = 0;
  std::string annotation;
};

// Read (name, default, flags, annotation). False with a Python error set.
bool ReadParameter(PyObject* item, Parameter* parameter);

// The parameter of a name; -1 where there is none.
int FindParameter(const Parameter* parameters, size_t count, PyObject* name);

}  // namespace triton
