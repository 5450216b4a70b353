// The one table of the kinds of Python objects that each class of parameters accepts. Launches obey
// it, the documentation prints it, and a test tries all pairs.
#pragma once

#include "arguments/types/type_table.h"
#include "python/python.h"

// The kinds of objects that the rules distinguish.
enum class Given : uint8_t {
  kInt,
  kIntEnum,
  kFloat,
  kBool,
  kNone,
  kArray,
  kInteger,    // a NumPy or ctypes integer
  kFloating,   // a NumPy or ctypes floating-point number
  kBoolean,    // a NumPy or ctypes bool
  kComplex,    // a NumPy complex number
  kAddress,    // a ctypes pointer
  kStructure,  // a ctypes structure, union or array, a NumPy structured scalar, a tensor map
  kNothing,    // anything else: no parameter takes it
};

Given GivenOf(const TypeEntry& entry);

// Whether a parameter of this class and size accepts this kind of object at all. Its value, the
// size of a typed scalar or a structure, and the elements of an array are checked elsewhere.
bool Takes(TypeClass type_class, size_t size, const TypeEntry& entry);

// argument_rules(): {class: {given: sizes}}; an empty tuple if the object has the parameter's
// own size, or the parameter's type has but one.
PyObject* ArgumentRules(PyObject* self, PyObject* args);
