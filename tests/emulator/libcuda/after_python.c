// Calls of a Python program's libraries after the end of Python.
#include <cuda.h>
#include <stdio.h>

void CallDriver(void) { printf("%d %d\n", (int)cuMemFree(16), (int)cuCtxSynchronize()); }
