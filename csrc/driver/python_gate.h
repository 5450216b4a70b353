// The functions of a driver that is written in Python, as C code may call them at any time.
#pragma once

#include <culaunch/driver_table.h>

// Put a gate before each function: after the end of the interpreter has begun it answers
// CUDA_ERROR_DEINITIALIZED and runs nothing, and a thread that the interpreter would end in the
// middle of a call waits there for the end of the process. The process has one such table: false
// where another was gated before, and nothing is changed then.
bool GateFunctions(culaunch::DriverTable* table, culaunch::NoteArrayFunction* note_array);
