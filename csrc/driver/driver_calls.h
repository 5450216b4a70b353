// The functions of the driver that Python calls as they are: events, copies, textures.
#pragma once

#include "python/python.h"

// Add them to _core.Driver as methods. Each takes the device's ordinal, which is current for the
// call, and then what the driver's function takes but for its results: numbers, addresses and
// handles as ints, descriptors as buffers of their very size, None for a null pointer. It returns
// the results. The type must have been added. -1 with a Python error set.
int AddDriverCalls();
