// Filling memory in the order of a stream.
#pragma once

#include <culaunch/driver.h>

#include "formats/dlpack.h"

// Set every byte to `value`. Call it without the GIL, because it waits while the stream's queue is
// full.
CUresult FillMemory(culaunch::Driver& driver, DLDevice device, CUstream stream, const void* begin,
                    unsigned char value, size_t bytes);
