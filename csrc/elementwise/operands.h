// The operands of an elementwise call: reading arrays and scalars, allocating outputs.
#pragma once

#include <culaunch/driver.h>

#include <string>

#include "arguments/arrays.h"
#include "arguments/type_table.h"
#include "formats/dlpack.h"
#include "python/python.h"

namespace elementwise {

constexpr int kMaxDims = 32;
constexpr int kMaxOperands = 48;  // inputs and outputs together

// Element types are numbered as in culaunch._elementwise._dtypes: arrays from 0, typed scalars
// from 32, Python's scalars from 64.
constexpr uint8_t kTypes = 15;
constexpr uint8_t kFirstScalar = 32;
constexpr uint8_t kFirstWeak = 64;
enum Number : uint8_t {
  kBool = 0,
  kInt8 = 1,
  kInt64 = 4,
  kUint8 = 5,
  kUint64 = 8,
  kFloat16 = 9,
  kBfloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
  kComplex64 = 13,
  kComplex128 = 14,
  kWeakBool = 64,
  kWeakInt = 65,
  kWeakFloat = 66,
  kWeakComplex = 67,
};

DLDataType TypeOf(uint8_t number);
const char* NameOf(uint8_t number);
inline int ItemSize(uint8_t number) { return TypeOf(number).bits / 8; }

// One argument. An array's shape and strides (in elements) are its own or lie in `room`.
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
  Ref owner;  // what keeps the view of a slower array
  TypeEntry scratch;
  int64_t room[2 * kMaxDims];

  std::string ShapeText() const;
};

// What the arrays of a call have in common.
struct Place {
  culaunch::Driver* driver = nullptr;
  DLDevice device = {0, 0};
  const Operand* first = nullptr;  // the first array
  bool has_noted = false;
  CUstream stream = nullptr;
};

enum class ReadResult { kDone, kFailed, kUnknownType };

// Read an argument; `what` names it in errors, which otherwise start with what is wrong.
// kFailed: a Python error is set.
ReadResult ReadOperand(PyObject* object, const std::string& what, Place* place, Operand* operand);

// The first part of the name of a type's module, such as "torch".
std::string ModuleRoot(PyTypeObject* type);

// Tell an emulated driver of an array.
void NoteOperand(const Operand& operand, Place* place);

// Allocate an array as the framework of the call's first array does, in the dimension order
// `order` (outermost first; null: C order), and read it. Null with a Python error set.
Ref Allocate(const Place& place, uint8_t number, int ndim, const int64_t* shape, const int* order,
             Operand* operand);

// The bytes of a scalar argument in the type that `number` is computed in. False with a Python
// error set.
bool StoreScalar(const Operand& operand, uint8_t number, unsigned char* target, size_t size);

}  // namespace elementwise
