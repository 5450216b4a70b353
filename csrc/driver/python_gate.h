// A Python driver's functions, in a form that C code may call at any time.
#pragma once

#include <culaunch/driver_table.h>

// Put a gate before each function. Once the interpreter starts to end, a gate returns
// CUDA_ERROR_DEINITIALIZED and runs no Python code. A thread that the interpreter would end in the
// middle of a call waits there until the process ends. The process has one such table. False if
// another table was gated before; nothing changes then.
bool GateFunctions(culaunch::DriverTable* table, culaunch::NoteArrayFunction* note_array);
