// Offering a driver to every library in the process that is built on the header.
#pragma once

#include <culaunch/driver.h>

#include <string>

// Publish a driver, once for the process. Returns the value of the environment variable that
// announces it. Its functions return CUDA_ERROR_DEINITIALIZED after the end of Python, because a
// later destructor may unload a library's module, and the emulator's functions are written in
// Python.
std::string PublishDriver(const culaunch::Driver& driver);
