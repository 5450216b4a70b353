// The facts about a Python type whose objects are passed to kernels: found once per type.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

enum class ArgumentKind : uint8_t {
  kUnsupported,
  kInt,
  kFloat,
  kBool,
  kNone,
  kExchange,   // an array with the DLPack C exchange API
  kCupy,       // a cupy.ndarray
  kArray,      // an array with __dlpack__, __cuda_array_interface__ or __array_interface__
  kScalar,     // a NumPy or ctypes scalar: its bytes are the argument
  kStructure,  // a ctypes structure or union, a NumPy structured scalar: likewise
};

// The class of a parameter's or a scalar's type.
enum class TypeClass : uint8_t {
  kUnknown = 0,
  kPointer = 1,
  kSigned = 2,
  kUnsigned = 3,
  kFloat = 4,
  kBool = 5,
  kStructure = 6,
  kNamed = 7,        // the name of an unknown structure or enumeration
  kEnumeration = 8,  // its underlying type is not known
  kFloat8 = 9,
};

struct TypeEntry {
  PyTypeObject* type;  // owned; null marks an entry that is not kept
  ArgumentKind kind = ArgumentKind::kUnsupported;
  TypeClass scalar_class = TypeClass::kUnknown;  // of kScalar
  DLDataType scalar_type = {0, 0, 0};            // of kScalar; bits 0 if not known
  const DLPackExchangeAPI* api = nullptr;        // of kExchange
  PyObject* find_stream = nullptr;               // of kCupy, owned: its get_current_stream
  bool has_dlpack = false;                       // of kArray
  bool versioned_dlpack = false;                 // __dlpack__ takes max_version
  bool has_cuda_interface = false;
  bool has_interface = false;   // __array_interface__
  bool is_torch = false;        // a torch.Tensor
  bool says_otherwise = false;  // of is_torch: a subclass that answers for itself, in Python
  bool is_enum = false;         // of kInt: an enum.IntEnum
  bool is_masked = false;       // of kUnsupported: numpy.ma.MaskedArray, whose mask would be lost
};

// The entry of a type, classified at its first use and kept for the life of the process.
// `scratch` is returned instead when the table is full. Null with a Python error set on failure.
const TypeEntry* LookUpType(PyTypeObject* type, TypeEntry* scratch);

// The entry for an object: its type's entry. If the type has none and the object itself carries
// __cuda_array_interface__, an entry in `scratch`.
const TypeEntry* LookUpObject(PyObject* object, TypeEntry* scratch);
