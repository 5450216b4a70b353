// The parameters of the driver table's functions, as the header declares them.
#pragma once

#include "python/python.h"

// prototypes(): the name of each function of the table to its parameters, one word for each. i is
// an int or an enumeration, u an unsigned, b a byte, h an unsigned short, f a float, z a size_t. q
// is a device address, s a text, l a launch configuration, p any other pointer or handle. A *
// before a word means a pointer to it.
PyObject* Prototypes(PyObject*, PyObject*);
