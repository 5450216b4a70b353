// The numbers that the extension and its Python modules share.
#pragma once

#include "python/python.h"

// Add NUMBERS to a module: the name of a list to its names and their numbers. Numbers that both
// sides use are declared only in C++, and Python takes them from here.
int AddNumbers(PyObject* module);

// Add LAUNCH_OPTIONS to a module: for each option of a launch (culaunch/launch_options.h) the name,
// the kind, the flag, the attribute (0: no attribute) and the text.
int AddLaunchOptions(PyObject* module);
