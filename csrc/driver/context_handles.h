// Handles that were created while the user's own context was current.
//
// A handle belongs to its context, and is destroyed with it. PyCUDA, for example, destroys its
// context before the objects of a program. The driver may then have freed a handle, or given it to
// other code. Releasing it would end the process, or free memory of other code. Therefore a handle
// is released only if its context is current. Otherwise it is left to the context.
#pragma once

#include <culaunch/driver.h>

#include <cstdint>

// Handles of different kinds may have the same number.
enum class HandleKind : uint8_t {
  kStream,
  kEvent,
  kMemory,
  kHostMemory,
  kArray,
  kTexture,
  kSurface
};

// Record a handle that was created, with the current context of a device.
void NoteHandle(culaunch::Driver& driver, int ordinal, HandleKind kind, uint64_t handle) noexcept;

// Whether a handle may be released in the current context. Its record is removed either way.
bool MayRelease(culaunch::Driver& driver, HandleKind kind, uint64_t handle) noexcept;
