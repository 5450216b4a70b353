// The parameters of the driver table's functions, as the header declares them.
#pragma once

#include "python/python.h"

// prototypes(): a dict from the name of each function in the table to its parameters, one letter
// for each. A * before a letter means a pointer to it.
//
//   i  an int or an enumeration   u  an unsigned         b  a byte       h  an unsigned short
//   f  a float                    z  a size_t            q  a device address
//   s  a text                     l  a launch configuration
//   p  any other pointer or handle
PyObject* Prototypes(PyObject*, PyObject*);
