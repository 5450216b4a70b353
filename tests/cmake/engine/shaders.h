#pragma once
#include <culaunch/jit.h>

// The module of the engine's shaders, compiled once; null if that failed, which is said.
culaunch::Module* Shaders();
