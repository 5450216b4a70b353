// The operands of a call: reading arrays with their shapes and strides, and scalars.
#pragma once

#include <culaunch/driver.h>

#include <string>

#include "arguments/protocols/arrays.h"
#include "arguments/types/type_table.h"
#include "arguments/views/element_types.h"
#include "formats/dlpack.h"
#include "python/python.h"

namespace operands {

constexpr int kMaxDims = 32;
constexpr int kMaxOperands = 48;  // inputs and outputs together

// One argument. An array's shape and strides (in elements) lie in `room`.
struct Operand {
  PyObject* object = nullptr;  // borrowed
  const TypeEntry* entry = nullptr;
  uint8_t number = 0;
  bool is_array = false;
  bool is_read_only = false;
  char* data = nullptr;
  DLDevice device = {0, 0};
  int ndim = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;
  Ref owner;  // keeps the view of a slower array alive
  TypeEntry scratch;
  int64_t room[2 * kMaxDims];

  std::string ShapeText() const;

  // Give it the strides of C order.
  void SetDense();
};

// The common properties of a call's arrays.
struct Place {
  culaunch::Driver* driver = nullptr;
  DLDevice device = {0, 0};
  const Operand* first = nullptr;  // the first array
  CUstream stream = nullptr;
  uint8_t types = kTypes;       // element types below this number are allowed
  bool checks_gradient = true;  // no tensor of torch may require grad
};

enum class ReadResult { kDone, kFailed, kUnknownType };

// Read an argument; `what` names it in errors, which otherwise start with the problem. kFailed: a
// Python error is set.
ReadResult ReadOperand(PyObject* object, const std::string& what, Place* place, Operand* operand);

// The top-level package of a type's module, such as "torch".
std::string ModuleRoot(PyTypeObject* type);

// The memory that an array lies in.
Extent ExtentOf(const Operand& operand);

// Prefix the current error with the argument's name, if it is a user's mistake.
void NameMistake(const std::string& what);

// Report an array to a driver that asks for arrays.
void NoteOperand(const Operand& operand, const culaunch::Driver& driver);

}  // namespace operands
