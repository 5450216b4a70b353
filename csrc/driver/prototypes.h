// What the functions of the driver table take, as the header declares them.
#pragma once

#include "python/python.h"

// prototypes(): the name of each function of the table to its parameters, one word for each:
// i an int or an enumeration, u an unsigned, b a byte, h an unsigned short, f a float, z a size_t,
// q a device address, s a text, l a launch configuration, p any other pointer or handle; and *
// before a word where that is what the parameter points to.
PyObject* Prototypes(PyObject*, PyObject*);
