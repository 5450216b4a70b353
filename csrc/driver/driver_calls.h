// The functions of the driver that Python calls directly: events, copies, textures.
#pragma once

#include "python/python.h"

// Add them to _core.Driver as methods. Each takes the ordinal of a device, which is made current
// for the call. The further parameters are those of the driver's function without its results.
// Numbers, addresses and handles are ints, descriptors are buffers of exactly their size, and None
// is a null pointer. It returns the results. The type must have been added. -1 with a Python error
// set.
int AddDriverCalls();
