// A library that uses culaunch and exports two functions of its own: what else can be seen of it?
#include "culaunch/culaunch.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const void* library_driver() { return &culaunch::Driver::Get(); }

EXPORT int library_throws_and_catches() {
  try {
    culaunch::Module("no image", 8);
  } catch (const culaunch::Error&) {
    return 1;
  }
  return 0;
}
