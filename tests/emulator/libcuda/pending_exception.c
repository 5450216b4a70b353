// Calls of the driver while an exception of Python is pending, with the GIL and without it.
#include <cuda.h>
#include <stddef.h>

extern void* PyExc_KeyError;
extern void PyErr_SetString(void* type, const char* text);
extern void* PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void* state);

int codes[3];
CUdeviceptr memory;

void Raise(int with_gil) {
  PyErr_SetString(PyExc_KeyError, "pending");
  void* state = with_gil ? NULL : PyEval_SaveThread();
  codes[0] = cuLaunchKernel(NULL, 1, 2, 3, 4, 5, 6, 7, NULL, NULL, NULL);
  codes[1] = cuMemAlloc(&memory, 64);
  codes[2] = cuMemsetD32(memory, 0x12345678, 16);
  if (state != NULL) PyEval_RestoreThread(state);
}
