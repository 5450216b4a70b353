// A driver that is offered to every library in the process that is built on the header.
#pragma once

#include <culaunch/driver.h>

#include <string>

// Publish a driver, for good, and the first one only; the text is the value of the environment
// variable that tells it. Its functions answer CUDA_ERROR_DEINITIALIZED once Python has ended: a
// module of a library may be unloaded by a destructor that runs later, and an emulator's functions
// are Python's.
std::string PublishDriver(const culaunch::Driver& driver);
