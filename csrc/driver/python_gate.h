// The functions of a driver that is written in Python, as C code may call them at any time.
#pragma once

#include <culaunch/driver_table.h>

// Put a gate before each function. After the end of the interpreter has begun, a gate returns
// CUDA_ERROR_DEINITIALIZED and runs nothing. A thread that the interpreter would end in the middle
// of a call waits there for the end of the process. The process has one such table. False if
// another table was gated before, and then nothing changes.
bool GateFunctions(culaunch::DriverTable* table, culaunch::NoteArrayFunction* note_array);
