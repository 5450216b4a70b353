// The parts of a Python function, read at every call of a kernel with a grid function.
//
// As attributes these cost about 40 ns each, and an audit event. CPython has functions for them,
// which are public, but not part of the stable ABI: they are looked up by name once.
#pragma once

#include <cstdint>

#include "python/python.h"

// __code__, __globals__ and __closure__; null with a Python error set if the object has none.
Ref CodeOf(PyObject* function);
Ref GlobalsOf(PyObject* function);
Ref ClosureOf(PyObject* function);

// One of a function's parts that code may replace: its code, its defaults, its keyword defaults.
// Borrowed; None if it is absent. Null with a Python error set.
enum class FunctionPart : uint8_t { kCode, kDefaults, kKeywordDefaults };
PyObject* PartOf(PyObject* function, FunctionPart part);

// The contents of a cell in a closure; null with a Python error set if it is empty.
Ref ContentsOf(PyObject* cell);

// False: read the attributes. The switch of _core.use_shortcut.
void UseFunctionParts(bool use);
