// What was made while a context of the user's own was current.
//
// It is that context's, and gone with it: PyCUDA, for one, destroys its context before the objects
// of a program go. A handle that is released after that is one that the driver has freed, or has
// given to somebody else since: the process would end there, or another's memory be freed. So such
// a thing is released only where its context is current, and is left to the context otherwise.
#pragma once

#include <culaunch/driver.h>

#include <cstdint>

// Handles of different things may be the same number.
enum class Thing : uint8_t { kStream, kEvent, kMemory, kHostMemory, kArray, kTexture, kSurface };

// Note what was made with the context that is current, of a device.
void NoteMade(culaunch::Driver& driver, int ordinal, Thing thing, uint64_t handle) noexcept;

// Whether something may be released with what is current; either way it is forgotten.
bool MayRelease(culaunch::Driver& driver, Thing thing, uint64_t handle) noexcept;
