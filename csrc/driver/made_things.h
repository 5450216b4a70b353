// Handles that were created while the user's own context was current.
//
// A handle belongs to its context, and goes with it. PyCUDA, for one, destroys its context before
// the objects of a program. The driver may then have freed a handle, or given it to other code.
// Releasing it would end the process, or free another's memory. Therefore a handle is released only
// if its context is current. Otherwise it is left to the context.
#pragma once

#include <culaunch/driver.h>

#include <cstdint>

// Handles of different things may be the same number.
enum class Thing : uint8_t { kStream, kEvent, kMemory, kHostMemory, kArray, kTexture, kSurface };

// Record a handle that was created, with the current context of a device.
void NoteMade(culaunch::Driver& driver, int ordinal, Thing thing, uint64_t handle) noexcept;

// Whether a thing may be released in the current context; in both cases it is forgotten.
bool MayRelease(culaunch::Driver& driver, Thing thing, uint64_t handle) noexcept;
